// The form: three starting points, their fields, the expression that they stand for, and errors beside the fields.
"use strict";

const by = (id) => document.getElementById(id);
const make = (name, text = "", attributes = {}) => {
  const found = document.createElement(name);
  if (text) found.textContent = text;
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
};

async function ask(path, question, headers = {}) {
  let answer;
  try {
    answer = await fetch(path, question === undefined ? {} : {
      method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(question) });
  } catch { throw { error: "the page's own server does not answer; is cumulant serve still running?" }; }
  const found = await answer.json().catch(() => null);
  if (found === null) throw { error: `the server answered ${answer.status} without a sentence` };
  if (!answer.ok) throw { ...found, status: answer.status };
  return found;
}

const Form = (() => {
  const TRAINING = ["records", "batch", "epochs", "noise_multiplier", "sampling"];
  const LOADERS = {
    poisson: "Each step takes each record by its own coin, in secret, as Opacus does.",
    shuffled: "Each epoch draws a fresh secret order and cuts it into batches.",
    "any-order": "Each epoch uses every record once. Nothing is gained by the order, which may be known.",
    "balls-in-bins": "Batches have random sizes; each record is in one step of every epoch.",
    "fixed-size": "Each step draws as many different records as a batch has, in secret.",
  };
  const ALL = { name: "", about: "", common: true, parameters: [], more: [] };
  const choices = { mechanism: [], sampling: [ALL] };
  const WHERE = { times: "rounds", prior: "prior", slack: "slack" };
  const PAUSE = 150;  // milliseconds without a key before the server is asked for the expression

  let expected = "";  // the expression that the fields stand for
  let flight = Promise.resolve();  // the question that is on its way; the next one waits for it
  let waiting = null;  // the promise of that expression while the server writes it

  const start = () => document.querySelector("[name=start]:checked").value;
  const chosen = (which) => choices[which].find((each) => each.name === by(which).value) || choices[which][0] || ALL;
  const all = (entry) => [...entry.parameters, ...entry.more];
  const value = (id) => by(id)?.value.trim() ?? "";
  const training = (sampling) => ({ ...Object.fromEntries(TRAINING.map((name) => [name, value(`train-${name}`)])), ...(sampling ? { sampling } : {}) });

  // ---- errors beside their fields

  function right() {
    by("problem").hidden = true;
    by("place").hidden = true;
    for (const each of document.querySelectorAll(".field .error")) each.remove();
    for (const each of document.querySelectorAll("[aria-invalid]")) { each.removeAttribute("aria-invalid"); each.removeAttribute("aria-errormessage"); }
  }

  function beside(id, text) {
    const input = by(id);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", `${id}-error`);
    const error = make("p", `${/^\w+=/.test(text) ? text : text.slice(0, 1).toUpperCase() + text.slice(1)}.`, { class: "error", role: "alert", id: `${id}-error` });
    input.closest(".field").append(error);
    for (let box = input.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  }

  // The field that an error is about: by the name it starts with, and by its place in the expression.
  function field(error, run, source) {
    const name = /^(?:the question is not right: )?(\w+)[=:]/.exec(error.error || "")?.[1];
    const placed = error.position !== null && error.position !== undefined;
    if (source === "train" && name && by(`train-${name}`)) return `train-${name}`;
    if (!placed && name === "delta") return "delta";
    if (!placed && name === "epsilon") return source === "calibrate" ? "target" : "claim";
    if (source === "attack" || source === "mu") return WHERE[name] || "";
    if (source === "other") return "other";
    if (start() === "publish" && run === expected && name) {
      const order = error.position > run.indexOf(" @ ") && run.includes(" @ ") ? ["sampling", "mechanism"] : ["mechanism", "sampling"];
      const found = [...order.map((which) => `${which}-${name}`), WHERE[name]].find((id) => id && by(id));
      if (found) return found;
    }
    return placed || /expression|neighbours|position/.test(error.error || "") ? "run" : "";
  }

  function wrong(error, run = "", source = "run") {
    right();
    const text = (error.error || "something went wrong").replace(/\.$/, ""), id = field(error, run, source);
    if (id) beside(id, text);
    else { by("problem").textContent = text; by("problem").hidden = false; }
    if (id === "run" && Number.isInteger(error.position) && !run.includes("\n")) {
      by("place").textContent = `${run}\n${" ".repeat(error.position)}^`;
      by("place").hidden = false;
    }
  }

  // ---- publish statistics: the expression is written here

  function input(which, { name, value: given }, optional) {
    const id = `${which}-${name}`, box = make("div", "", { class: "field" });
    const control = make("input", "", { id, autocomplete: "off", spellcheck: "false" });
    if (optional) control.placeholder = given || "not set";
    else control.value = given;
    box.append(make("label", name.replaceAll("_", " "), { for: id }), control);
    return box;
  }

  function fill(which) {
    const entry = chosen(which);
    by(`${which}-fields`).replaceChildren(...entry.parameters.map((each) => input(which, each, false)));
    by(`${which}-more`).replaceChildren(...entry.more.map((each) => input(which, each, true)));
    by(`${which}-about`).textContent = entry.about ? `${entry.name}: ${entry.about}.` : "";
    by("more").hidden = !["mechanism", "sampling"].some((each) => chosen(each).more.length);
  }

  const quoted = (text) => /^[a-z][a-z-]*$/i.test(text) && !/^(true|false|inf)$/i.test(text) ? `"${text}"` : text;

  function built(unknown = "") {
    const call = (which) => {
      const given = all(chosen(which)).map(({ name }) => [name, `${which}-${name}` === unknown ? "?" : quoted(value(`${which}-${name}`))]);
      return `${chosen(which).name}(${given.filter(([, text]) => text).map(([name, text]) => `${name}=${text}`).join(", ")})`;
    };
    let text = call("mechanism");
    if (chosen("sampling") !== ALL) text += ` @ ${call("sampling")}`;
    const rounds = unknown === "rounds" ? "?" : value("rounds");
    return rounds === "1" ? text : `${text} * ${rounds}`;
  }

  // ---- training: the server writes the expression, from the loop that the library accounts for

  function translate() {
    const question = training();
    const mine = waiting = (async () => {
      await new Promise((go) => { setTimeout(go, PAUSE); });
      await flight.catch(() => null);
      if (mine !== waiting) return;
      try {
        flight = ask("/api/training", question);
        const found = await flight;
        if (mine !== waiting) return;
        expected = by("run").value = found.run;
      } catch (error) {
        if (mine !== waiting) return;
        expected = by("run").value = "";
        wrong(error, "", "train");
      }
      waiting = null;
      typed();
      unknowns();
      document.dispatchEvent(new Event("expression"));
    })();
    typed();
    return mine;
  }

  // What the fields say is written into the expression; for training a moment later.
  function rewrite() {
    right();
    if (start() !== "publish") return translate();
    waiting = null;
    expected = by("run").value = built();
    typed();
    unknowns();
    return Promise.resolve();
  }

  // Waits for the expression of the fields.
  async function ready() { while (waiting) await waiting; }

  function typed() {
    by("run").classList.toggle("pending", waiting !== null);
    by("typed").textContent = waiting ? "Writing the expression …"
      : value("run") !== expected && value("run") ? "This expression is asked; the fields above say something else." : "";
  }

  // ---- calibration: what may be looked for, and the expression with a question mark for it

  function unknowns() {
    const before = value("unknown");
    const known = start() === "publish"
      ? [...["mechanism", "sampling"].flatMap((which) => all(chosen(which)).filter(({ name }) => /^[\d.]/.test(value(`${which}-${name}`)))
        .map(({ name }) => [`${which}-${name}`, name.replaceAll("_", " ")])), ["rounds", "rounds"]]
      : [["train-noise_multiplier", "noise multiplier"], ["rounds", /Poisson|WithoutReplacement/.test(expected) ? "steps" : "epochs"]];
    by("unknown").replaceChildren(...known.map(([id, name]) => make("option", name, { value: id })));
    if (known.some(([id]) => id === before)) by("unknown").value = before;
  }

  function asked(unknown) {
    const run = value("run");
    if (run.includes("?")) return run;
    if (run !== expected) return null;
    if (start() === "publish") return built(unknown);
    return unknown === "rounds" ? run.replace(/( \* \d+)?$/, " * ?") : run.replace(/sigma=[^,)]+/, "sigma=?");
  }

  // ---- starting points

  function show() {
    const which = start();
    by("train-fields").hidden = by("train-about").hidden = which === "publish";
    by("publish-fields").hidden = which !== "publish";
    by("claim-field").hidden = which !== "review";
    by("train-about").textContent = LOADERS[value("train-sampling")];
    by("ask").textContent = which === "review" ? "Review" : "Ask";
    unknowns();
  }

  async function offer() {
    try {
      const found = await ask("/api/catalogue");
      choices.mechanism.push(...found.mechanisms);
      choices.sampling.push(...found.schemes);
    } catch (error) { wrong(error); }
    for (const which of ["mechanism", "sampling"]) {
      const groups = [["Common", true], ["All others", false]].map(([label, common]) => {
        const group = make("optgroup", "", { label });
        group.append(...choices[which].filter((each) => each.common === common)
          .map(({ name }) => make("option", name || "All data, no sample", { value: name })));
        return group;
      });
      by(which).replaceChildren(...groups);
      fill(which);
    }
    show();
  }

  function type(run) { waiting = null; by("run").value = run; typed(); }

  return { TRAINING, LOADERS, start, value, training, right, wrong, fill, rewrite, ready, typed, type, asked, show, offer,
    fields: () => expected, pending: () => waiting !== null };
})();
