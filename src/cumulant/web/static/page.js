// The page: a run is clicked together or typed, asked about, compared, calibrated; the address keeps it.
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
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status} without a sentence` }));
  if (!answer.ok) throw found;
  return found;
}

// ---- the run

// DP-SGD is said in its own words; everything else is what the library has registered.
const SGD = { name: "DP-SGD", about: "Gradients clipped to a norm, with Gaussian noise of this multiple of it on their sum",
  parameters: [{ name: "noise_multiplier", value: "1.1" }, { name: "clip", value: "1" }] };
const ALL = { name: "", about: "", parameters: [] };
const choices = { mechanism: [SGD], sampling: [ALL] };

const chosen = (which) => choices[which].find((each) => each.name === by(which).value) || choices[which][0];

function fields(which) {
  const entry = chosen(which);
  by(`${which}-fields`).replaceChildren(...entry.parameters.map(({ name, value }) => {
    const label = make("label", `${name.replaceAll("_", " ")} `);
    const input = make("input", "", { id: `${which}-${name}`, autocomplete: "off", spellcheck: "false" });
    input.value = value;
    label.append(input);
    return label;
  }));
  by(`${which}-about`).textContent = entry.about ? `${entry.name}: ${entry.about}.` : "";
  const unknowns = ["mechanism", "sampling"].flatMap((each) => chosen(each).parameters
    .filter(({ value }) => /^["\d.]/.test(value)).map(({ name }) => [`${each}-${name}`, name.replaceAll("_", " ")]));
  by("unknown").replaceChildren(...[...unknowns, ["rounds", "rounds"]].map(([id, name]) => make("option", name, { value: id })));
}

function built(unknown = "") {
  const value = (id) => (id === unknown ? "?" : by(id).value.trim());
  const said = (which) => chosen(which).parameters.map(({ name }) => `${name}=${value(`${which}-${name}`)}`).join(", ");
  const scheme = chosen("sampling");
  let text = chosen("mechanism") === SGD
    ? `Gaussian(${said("mechanism")}, relation="${scheme.relation === "replace-one" ? "replace-one" : "add-remove"}")`
    : `${chosen("mechanism").name}(${said("mechanism")})`;
  if (scheme !== ALL) text += ` @ ${scheme.name}(${said("sampling")})`;
  const rounds = value("rounds");
  return rounds === "1" ? text : `${text} * ${rounds}`;
}

function rebuilt() { by("run").value = built(); typed(); }

function typed() {
  const other = by("run").value.trim() !== built();
  by("typed").textContent = other ? "This expression is what is asked; the fields above say something else." : "";
}

async function offered() {
  try {
    const found = await ask("/api/catalogue");
    choices.mechanism.push(...found.mechanisms);
    choices.sampling.unshift(...found.schemes);
  } catch (error) { wrong(error); }
  for (const which of ["mechanism", "sampling"])
    by(which).replaceChildren(...choices[which].map(({ name }) => make("option", name || "All data, no sample", { value: name })));
  if (choices.sampling.some(({ name }) => name === "Poisson")) by("sampling").value = "Poisson";
  for (const which of ["mechanism", "sampling"]) fields(which);
  if (by("sampling-rate")) by("sampling-rate").value = "1%";
}

function wrong(error, run) {
  by("problem").textContent = error.error || "something went wrong";
  by("problem").hidden = false;
  const pointed = error.position !== null && error.position !== undefined && run && !run.includes("\n");
  by("place").hidden = !pointed;
  if (pointed) by("place").textContent = `${run}\n${" ".repeat(error.position)}^`;
}

function right() { by("problem").hidden = true; by("place").hidden = true; }

// ---- an answer belongs to its question: one that no longer fits the form is struck out at once

const texts = (...ids) => ids.map((id) => by(id).value.trim());
const questions = {
  answer: () => JSON.stringify(texts("run", "other", "delta")),
  calibrated: () => JSON.stringify([...texts("run", "unknown", "target", "delta"), built(by("unknown").value)]),
};
const answers = { answer: null, calibrated: null };  // the question that each answer on the page belongs to
const old = (which) => answers[which] !== null && answers[which] !== questions[which]();

function judge() {
  const struck = old("answer");
  for (const id of ["answer", "charts"]) by(id).classList.toggle("stale", struck);
  by("calibrated").classList.toggle("stale", old("calibrated"));
  by("stale").textContent = struck ? "The question has changed. What is struck out answers the old one: ask again." : "";
  for (const button of document.querySelectorAll("[data-copy]")) button.disabled = struck;
  if (struck) { by("copied").textContent = ""; right(); }
}

// ---- the answer

let shown = null;

function card(found, which, several) {
  const guarantee = found.guarantee, box = make("div", "", { class: "card" });
  const [first, ...rest] = found.said;
  box.append(make("p", `epsilon = ${first.match(/^epsilon = (\S+)/)?.[1] ?? guarantee.epsilon}`, { class: `number ${several ? which : ""}` }));
  if (typeof guarantee.epsilon === "number" && guarantee.asked === "delta" && guarantee.lower !== null) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 400 24");
    svg.setAttribute("class", "interval");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `the true epsilon lies between ${Chart.short(guarantee.lower)} and ${Chart.short(guarantee.epsilon)}`);
    const left = 320 * guarantee.lower / guarantee.epsilon;
    for (const [x, width, name] of [[0, 400, "quiet"], [left, Math.max(320 - left, 2), which]]) {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      bar.setAttribute("x", x); bar.setAttribute("y", name === "quiet" ? 12 : 4);
      bar.setAttribute("width", width); bar.setAttribute("height", name === "quiet" ? 1 : 16);
      bar.setAttribute("class", name === "quiet" ? "frame" : `band ${name} solid`);
      svg.append(bar);
    }
    box.append(svg);
  }
  for (const sentence of [first, ...rest]) box.append(make("p", sentence));
  const folded = make("details"), list = make("ul");
  folded.append(make("summary", "What is assumed"));
  for (const each of found.assumptions) list.append(make("li", each));
  folded.append(list);
  box.append(folded);
  return box;
}

const CHARTS = [["rounds", true], ["epsilon", false], ["attack", true]];
let asked = 0;

async function explore() {
  const run = by("run").value.trim(), other = by("other").value.trim(), delta = by("delta").value.trim(), turn = ++asked;
  const state = new URLSearchParams({ run, delta });
  if (other) state.set("other", other);
  history.replaceState(null, "", `#${state}`);
  right();
  answers.answer = questions.answer();
  judge();
  by("answer").replaceChildren(make("p", "Looking for the best bound …"));
  by("charts").replaceChildren();
  by("copies").hidden = true;
  const runs = other ? [run, other] : [run];
  const found = [];
  for (const each of runs) {
    try { found.push(await ask("/api/explore", { run: each, delta })); }
    catch (error) {
      if (turn === asked) { by("answer").replaceChildren(); wrong(error, each); judge(); }
      return;
    }
  }
  if (turn !== asked) return;
  shown = found[0];
  const cards = make("div", "", { class: "cards" });
  found.forEach((each, i) => cards.append(card(each, i ? "two" : "one", runs.length > 1)));
  by("answer").replaceChildren(cards);
  by("copies").hidden = false;
  judge();
  for (const [kind, logarithmic] of CHARTS) {
    try {
      const drawn = await Promise.all(runs.map((each) => ask("/api/chart", { run: each, delta, kind })));
      if (turn !== asked) return;
      Chart.draw(by("charts"), drawn, logarithmic);
    } catch (error) {
      if (turn !== asked) return;
      by("charts").append(make("p", `The chart of ${kind}: ${error.error}`));
    }
  }
  by("charts").dataset.done = String(turn);
}

let searched = 0;

async function calibrate() {
  const unknown = by("unknown").value, run = by("run").value.trim(), turn = ++searched, own = run.includes("?");
  const [epsilon, delta] = texts("target", "delta"), question = answers.calibrated = questions.calibrated();
  judge();
  if (!own && run !== built()) {
    by("calibrated").textContent = "The expression and the fields differ. Write ? for the number that you look for, or choose it again above.";
    return;
  }
  by("calibrated").textContent = "Searching …";
  try {
    const found = await ask("/api/calibrate", { run: own ? run : built(unknown), epsilon, delta });
    if (turn !== searched) return;
    if (question !== questions.calibrated()) { by("calibrated").textContent = "The question has changed: calibrate again."; return; }
    by("calibrated").textContent = `Use ${found.parameter} = ${found.value}: epsilon ≤ ${Chart.short(found.guarantee.epsilon)}`
      + (found.fails === null ? "." : `; ${found.fails} fails.`);
    if (own) { by("run").value = run.replace("?", found.value); typed(); }
    else { by(unknown).value = String(found.value); rebuilt(); }
    answers.calibrated = questions.calibrated();
    await explore();
  } catch (error) { if (turn === searched) by("calibrated").textContent = error.error; }
}

async function copy(what) {
  if (old("answer")) return;
  const text = what === "link" ? location.href : shown[what];
  try { await navigator.clipboard.writeText(text); by("copied").textContent = "Copied."; }
  catch { by("copied").textContent = text; }
}

// ---- the ledger

let account = null, looked = 0;

function view(name) {
  for (const each of ["explore", "ledger"]) {
    by(each).hidden = each !== name;
    by(`show-${each}`).setAttribute("aria-pressed", String(each === name));
  }
  if (name === "ledger") accounts();
}

async function accounts() {
  by("ledger-problem").hidden = true;
  try {
    const found = await ask("/api/ledger");
    by("accounts").replaceChildren();
    by("spending").hidden = !found.spending;
    for (const each of found.accounts) {
      const box = make("div", "", { class: "card" });
      const share = each.used === "inf" ? 1 : Math.min(each.used, 1);
      box.append(make("h3", each.account));
      box.append(make("p", `Budget (${each.epsilon}, ${each.delta}), ${each.relation}, ${each.mode}; ${each.state}; `
        + `spent so far epsilon ${each.spent === "inf" ? "∞" : Chart.short(each.spent)}; ${each.entries} entries.`));
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      bar.setAttribute("class", "bar"); bar.setAttribute("role", "img"); bar.setAttribute("viewBox", "0 0 100 4");
      bar.setAttribute("preserveAspectRatio", "none");
      bar.setAttribute("aria-label", `${Math.round(share * 1000) / 10} % of the budget is used`);
      const used = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      used.setAttribute("class", "used"); used.setAttribute("width", 100 * share); used.setAttribute("height", 4);
      bar.append(used);
      box.append(bar, make("p", `${Math.round(share * 1000) / 10} % used` + (each.fits === null ? "" : `; ${each.fits} × ${each.like} still fit`)));
      const open = make("button", `History of ${each.account}`, { type: "button" });
      open.addEventListener("click", () => { account = each.account; by("receipt").textContent = ""; by("history-view").hidden = false; past(); });
      box.append(open);
      by("accounts").append(box);
    }
    if (!found.accounts.length) by("accounts").append(make("p", "There is no account yet."));
  } catch (error) { by("ledger-problem").textContent = error.error; by("ledger-problem").hidden = false; }
}

async function past(before = null) {
  const turn = ++looked;
  by("history-title").textContent = `History of ${account}`;
  try {
    const asked = { account, search: by("search").value };
    if (before !== null) asked.before = before;
    const found = await ask(`/api/ledger/history?${new URLSearchParams(asked)}`);
    if (turn !== looked) return;
    const table = make("table"), head = make("tr"), body = make("tbody");
    for (const each of ["Entry", "Kind", "When", "Who", "Run", "Receipt"]) head.append(make("th", each, { scope: "col" }));
    const more = found.next === null ? "" : `, and more below entry ${found.next}`;
    table.append(make("caption", `${found.entries.length} of ${found.all} entries${more}`), make("thead"), body);
    table.tHead.append(head);
    for (const each of found.entries) {
      const row = make("tr"), cell = make("td"), button = make("button", "Copy", { type: "button", "aria-label": `Copy the receipt of entry ${each.seq}` });
      button.addEventListener("click", async () => {
        const text = JSON.stringify({ account, seq: each.seq, hash: each.hash, kind: each.kind, key: each.key });
        try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = text; }
      });
      cell.append(button);
      row.append(make("td", String(each.seq)), make("td", each.kind), make("td", each.time), make("td", each.actor),
        make("td", each.run || "", { class: "code" }), cell);
      body.append(row);
    }
    by("history").replaceChildren(table);
    if (before !== null) by("history").prepend(button("Newest entries", () => past()));
    if (found.next !== null) by("history").append(button("Older entries", () => past(found.next)));
  } catch (error) { if (turn === looked) by("history").replaceChildren(make("p", error.error)); }
}

function button(text, act) {
  const made = make("button", text, { type: "button" });
  made.addEventListener("click", act);
  return made;
}

async function spend(event) {
  event.preventDefault();
  try {
    const found = await ask("/api/ledger/spend", { account, run: by("spend-run").value }, { authorization: `Bearer ${by("token").value}` });
    by("receipt").textContent = `Receipt: ${JSON.stringify(found)}`;
    by("verdict").textContent = "";
    await accounts();
    await past();
  } catch (error) { by("receipt").textContent = error.error; }
}

// ---- wiring

for (const which of ["mechanism", "sampling"])
  by(which).addEventListener("change", () => { fields(which); rebuilt(); });
for (const id of ["mechanism-fields", "sampling-fields", "rounds"]) by(id).addEventListener("input", () => { rebuilt(); });
by("question").addEventListener("submit", (event) => { event.preventDefault(); explore(); });
by("run").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); explore(); }
});
by("run").addEventListener("input", typed);
for (const event of ["input", "change"]) by("question").addEventListener(event, judge);  // after what the fields do themselves
by("spend-run").addEventListener("input", () => { by("receipt").textContent = ""; });
for (const [event, open] of [["beforeprint", true], ["afterprint", false]])  // on paper nothing can be unfolded
  window.addEventListener(event, () => { for (const each of document.querySelectorAll("#answer details")) each.open = open; });
by("calibrate").addEventListener("click", calibrate);
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button.dataset.copy));
for (const name of ["explore", "ledger"]) by(`show-${name}`).addEventListener("click", () => view(name));
by("search").addEventListener("input", () => past());
by("spending").addEventListener("submit", spend);
by("verify").addEventListener("click", async () => {
  by("verdict").textContent = "Verifying …";
  try { by("verdict").textContent = (await ask("/api/ledger/verify", {})).said; }
  catch (error) { by("verdict").textContent = error.error; }
});

function opened() {
  const state = new URLSearchParams(location.hash.slice(1));
  by("run").value = state.get("run") || built();
  typed();
  if (state.get("delta")) by("delta").value = state.get("delta");
  by("other").value = state.get("other") || "";
  by("comparison").open = Boolean(state.get("other"));
  explore();
}
window.addEventListener("hashchange", opened);
offered().then(opened);
