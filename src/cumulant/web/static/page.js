// The page: a question is asked once, its answer is drawn piece by piece, and struck out when the question changes.
"use strict";

const { value } = Form;
const number = (found) => found === "inf" ? Infinity : found;

// ---- an answer belongs to its question: one that no longer fits the form is struck out at once

const texts = (...ids) => ids.map(value);
const questions = {
  answer: () => JSON.stringify([...texts("run", "other", "delta"), Form.start() === "review" ? value("claim") : null, Form.pending()]),
  calibrated: () => JSON.stringify([...texts("run", "unknown", "target", "delta"), Form.pending()]),
};
const answers = { answer: null, calibrated: null };  // the question that each answer on the page belongs to
const small = { attack: () => JSON.stringify(texts("attack-kind", "prior")), mu: () => value("slack") };
const pictured = { attack: null, mu: null };  // the attack and the slack that are drawn or asked for
const old = (which) => answers[which] !== null && answers[which] !== questions[which]();

function judge() {
  const struck = old("answer");
  by("result").classList.toggle("stale", struck);
  by("calibrated").classList.toggle("stale", old("calibrated"));
  by("stale").textContent = struck ? "The question has changed. What is struck out answers the old one: ask again." : "";
  for (const button of document.querySelectorAll("[data-copy]")) button.disabled = struck || current === null;
  if (struck) by("copied").textContent = "";
  if (!struck && current) {  // an attack or a slack that was changed while the answer was struck out
    if (pictured.attack !== small.attack()) attack();
    if (pictured.mu !== small.mu()) mu();
  }
}

// ---- pictures are drawn as wide as their place, again when that changes

const drawn = new Map();
function draw(place, act) { drawn.set(place, act); act(); }
// A skeleton is as high as what it stands for was, so that nothing below it moves.
function empty(place, text = "Computing …") {
  const height = place.querySelector(".skeleton") || !place.offsetHeight ? "" : `${place.offsetHeight}px`;
  drawn.delete(place);
  place.replaceChildren(make("div", text, { class: "skeleton" }));
  place.firstChild.style.height = height;
}
let resizing = 0;
window.addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { for (const act of drawn.values()) act(); }, 100);
});

// ---- the answer

let asked = 0, shown = null, current = null;  // current: the runs, delta and claim that the answer is about

const RIGOUR = { proved: "✔ proved", bounded: "✔ bounded, rounding included", estimated: "estimated, not proved" };

function card(found, which, several) {
  const { guarantee } = found, box = make("div", "", { class: "card" });
  const head = make("p", `epsilon = ${found.shown.epsilon}`, { class: `number ${several ? which : ""}` });
  box.append(head, make("p", `at delta = ${found.shown.delta} `, { class: "at" }));
  if (guarantee.epsilon !== "inf") box.lastChild.append(make("span", RIGOUR[guarantee.rigour], { class: `badge ${guarantee.rigour}` }));
  const facts = make("dl"), [first, ...rest] = found.said;
  const fact = (name, ...sentences) => facts.append(make("dt", name), ...sentences.map((each) => make("dd", each)));
  fact("Protects", found.protects);
  if (guarantee.epsilon === "inf") fact("Means", first);
  else if (rest.length) fact("Means", ...rest);
  if (several) { fact("Run"); facts.append(make("dd", guarantee.run, { class: "code" })); }
  box.append(facts);
  if (found.careful) box.append(make("p", found.careful, { class: "warning" }));
  const assumed = make("details"), list = make("ul");
  for (const each of found.assumptions) list.append(make("li", each));
  assumed.append(make("summary", "Check these assumptions"), list);
  const proof = make("details");
  proof.append(make("summary", "How it is proved"), make("pre", found.statement, { class: "statement" }));
  box.append(assumed, proof);
  return box;
}

function mixture(found) {
  const [first, second] = found.map((each) => each.guarantee.relation);
  if (!second || first === second) return null;
  const box = make("div", "", { class: "warning", id: "mixture" }), unsaid = first === "any" || second === "any";
  box.append(make("p", unsaid ? "These two epsilons compare only if both protect against the same change."
    : "These two epsilons do not compare: they protect against different changes."));
  found.forEach((each, i) => box.append(make("p", `${i ? "Second" : "First"} run: ${each.protects}.`)));
  return box;
}

// included: a way to draw batches that the loop includes, so that what is false for it is false for the loop.
function verdict(check, upper, lower, included) {
  const reason = {
    holds: check.slack >= 0 ? `: epsilon ${upper} is enough at this delta` : "",
    false: lower === null && check.lower !== null && included ? `: it needs at least ${Chart.short(check.lower, "down")}, even if the order was secret` : lower !== null && check.lower > check.claimed ? `: no accountant can report less than ${lower}` : "",
    open: check.epsilon === "inf" ? ": no finite epsilon is known for this run"
      : lower === null ? `: epsilon ${upper} is enough, and no lower end is known` : `: the true epsilon lies between ${lower} and ${upper}`,
  }[check.verdict];
  const word = { holds: "The claim holds", false: "The claim is false", open: "The claim is open" }[check.verdict];
  return make("p", `${word}${reason}.`, { class: `verdict ${check.verdict}`, id: "claim-verdict" });
}

async function explore() {
  const turn = ++asked;
  await Form.ready();
  if (turn !== asked || (!value("run") && document.querySelector("[aria-invalid]"))) return;
  const [run, other, delta] = texts("run", "other", "delta"), review = Form.start() === "review", claim = review ? value("claim") : null;
  const state = new URLSearchParams({ start: Form.start(), run, delta });
  if (other) state.set("other", other);
  if (review) state.set("claim", claim);
  if (Form.start() !== "publish" && run === Form.fields()) for (const [name, text] of Object.entries(Form.training())) state.set(name, text);
  history.replaceState(null, "", `#${state}`);
  Form.right();
  answers.answer = questions.answer();
  current = null;
  judge();
  by("loaders").hidden = true;
  by("result").hidden = false;
  delete by("charts").dataset.done;
  empty(by("answer"), "Looking for the best bound …");
  empty(by("attack-picture"));
  for (const [name] of [["mu"], ...CHARTS]) { empty(picture(name)); caption(name, ""); }
  const runs = other ? [run, other] : [run];
  const found = [];
  let check = null, included = "";
  for (const each of runs) {
    try {
      found.push(await ask("/api/explore", { run: each, delta }));
      if (review && each === run && run === Form.fields())  // the loop knows more than its expression
        ({ check, no_better_than: included } = await ask("/api/training", { ...Form.training(), claim, delta }));
      else if (review && each === run) check = await ask("/api/check", { run, epsilon: claim, delta });
    } catch (error) {
      if (turn === asked && !old("answer")) Form.wrong(error, each, each === run ? "run" : "other");
      if (turn === asked) { by("result").hidden = true; answers.answer = null; judge(); }
      return;
    }
  }
  if (turn !== asked) return;
  shown = found[0];
  current = { turn, runs, delta, claim: check && number(check.claimed) };
  for (const each of ["attack", "mu"]) pictured[each] = small[each]();  // both follow below
  const cards = make("div", "", { class: "cards" }), bars = make("div", "", { class: "bars" });
  found.forEach((each, i) => cards.append(card(each, i ? "two" : "one", runs.length > 1)));
  const verdicts = check ? [verdict(check, shown.shown.epsilon, shown.shown.lower, included)] : [];
  by("answer").replaceChildren(...verdicts, ...[mixture(found)].filter(Boolean), cards, bars);
  const rows = found.map((each, i) => ({ name: runs.length > 1 ? (i ? "second run: " : "first run: ") : "",
    lower: each.guarantee.lower, upper: number(each.guarantee.epsilon), shown: { lower: each.shown.lower, upper: each.shown.epsilon } }));
  drawn.delete(by("answer"));
  draw(bars, () => Picture.interval(bars, rows, check && { value: number(check.claimed), shown: claim }));
  by("copies").hidden = false;
  judge();
  await Promise.all([pictures(turn), review && run === Form.fields() ? loaders(turn, claim, delta) : null]);
  if (turn === asked) by("charts").dataset.done = String(turn);
}

async function pictures(turn) {
  await attack();
  for (const each of CHARTS.slice(0, 2)) if (turn === asked) await chart(turn, ...each);
  if (turn === asked) await mu();
  for (const each of CHARTS.slice(2)) if (turn === asked) await chart(turn, ...each);
}

// ---- charts: [name, how the vertical axis runs, titles of the axes]

const CHARTS = [
  ["attack", true, () => ({ x: "false alarms", y: "members found" })],
  ["epsilon", false, () => ({ x: "delta", y: "epsilon" })],
  ["rounds", true, (title) => ({ x: "rounds", y: `epsilon at delta = ${/δ = (\S+)/.exec(title)?.[1] ?? "?"}` })],
];
const picture = (name) => document.querySelector(`#chart-${name} .picture`);
function caption(name, text) { document.querySelector(`#chart-${name} figcaption`).textContent = text; }

async function chart(turn, name, logarithmic, titles) {
  const { runs, delta, claim } = current, place = picture(name);
  try {
    const found = await Promise.all(runs.map((run) => ask("/api/chart", { run, delta, kind: name })));
    if (turn !== asked) return;
    if (Number(delta) === 0 || Number(delta) >= 1) for (const each of found) each.marked = null;  // drawn, and not asked about
    const { x } = found[0].curves.upper ?? { x: [] };
    if (claim && x.length) found[0].curves.claim = { x: [x[0], x.at(-1)], y: [claim, claim] };
    draw(place, () => { if (!Chart.draw(place, found, titles(found[0].title), logarithmic).length) place.replaceChildren(make("p", "There is nothing finite to draw.")); });
    caption(name, name === "attack" ? found.map(({ title }) => /advantage.*/.exec(title)?.[0] ?? "").join("; ").replace(/^a/, "A").replace(/$/, ".")
      : "The true epsilon lies in the band between the bounds.");
    if (name !== "attack" && !found.every(({ curves }) => curves.lower)) caption(name, "No lower bound is known.");
  } catch (error) {
    if (turn === asked) { drawn.delete(place); place.replaceChildren(make("p", `${error.error}.`, { class: "error" })); }
  }
}

// ---- attacks in words

const WORDS = {
  membership: { prior: "False alarms", sentence: (n, a, b) => `Of ${n} members, blind guessing finds ${a}; the attacker finds at most ${b}.` },
  attribute: { prior: "Right already", sentence: (n, a, b) => `Of ${n} secrets, ${a} are guessed without the release, at most ${b} with it.` },
  reidentification: { prior: "Right already", sentence: (n, a, b) => `Of ${n} records, ${a} are named without the release, at most ${b} with it.` },
  reconstruction: { prior: "Right already", sentence: (n, a, b) => `Of ${n} records, ${a} are rebuilt without the release, at most ${b} with it.` },
};
let attacked = 0;

async function attack() {
  const mine = ++attacked, kind = value("attack-kind"), prior = value("prior"), place = by("attack-picture");
  by("prior-label").textContent = WORDS[kind].prior;
  if (!current || old("answer")) return;
  const { runs } = current;
  pictured.attack = small.attack();
  empty(place);
  try {
    const found = await Promise.all(runs.map((run) => ask("/api/risk", { run, kind, prior })));
    if (mine !== attacked) return;
    const boxes = found.map((each, i) => {
      const box = make("div", "", { class: "attacked" }), side = make("div"), success = number(each.success);
      const counts = Picture.people(box, each.prior, success, i ? "two" : "one");
      const whole = (count) => count.toLocaleString("en");
      const numbers = make("p", `${each.shown.prior} → `, { class: `gained ${i ? "two" : "one"}` });
      numbers.append(make("strong", `at most ${each.shown.success}`));
      const key = make("ul", "", { class: "key" });
      for (const [name, text] of [["before", kind === "membership" ? "found by blind guessing" : "right without the release"], [`gain ${i ? "two" : "one"}`, "gained from the release, at most"], ["none", kind === "membership" ? "not found" : "not right"]]) {
        const item = make("li", text), dot = Chart.make("svg", { viewBox: "0 0 10 10", width: 12, height: 12, "aria-hidden": "true" });
        dot.append(Chart.make("circle", { class: name, cx: 5, cy: 5, r: 4 }));
        item.prepend(dot);
        key.append(item);
      }
      if (counts.each > 1) key.append(make("li", `One dot is ${whole(counts.each)} guesses.`));
      side.append(...(runs.length > 1 ? [make("h3", i ? "Second run" : "First run", { class: i ? "two" : "one" })] : []), numbers,
        make("p", WORDS[kind].sentence(whole(counts.total), whole(counts.before), whole(counts.after))), key);
      box.append(side);
      return box;
    });
    drawn.delete(place);
    place.replaceChildren(...boxes, make("p", kind === "membership" ? `The attacker accuses ${found[0].shown.prior} of those who are not in the data.` : found[0].said[1], { class: "about" }));
  } catch (error) { if (mine === attacked) { place.replaceChildren(); Form.wrong(error, runs[0], "attack"); } }
}

// ---- mu

const SEEN = { "replace-one": ["another record", "this record"], "add-remove": ["without the record", "with the record"] };
let measured = 0;

async function mu() {
  const mine = ++measured, slack = value("slack"), place = picture("mu");
  if (!current || old("answer")) return;
  const { runs } = current;
  pictured.mu = small.mu();
  empty(place);
  caption("mu", "");
  try {
    const found = await Promise.all(runs.map((run) => ask("/api/mu", { run, slack })));
    if (mine !== measured) return;
    const finite = found.every((each) => each.mu !== "inf");
    if (finite) draw(place, () => Picture.bells(place, found.map((each) => each.mu), SEEN[found[0].relation] ?? SEEN["add-remove"]));
    else { drawn.delete(place); place.replaceChildren(make("p", "No finite mu is known at this slack.")); }
    const text = found.filter((each) => each.mu !== "inf").map((each, i) => {
      const least = each.shown.lower === null ? "" : ` (at least ${each.shown.lower})`, run = runs.length > 1 ? (i ? "Second run: " : "First run: ") : "";
      const fit = each.fit === null ? (each.fit_lower >= 0.01 ? " It describes this run poorly: report epsilon and delta." : "")
        : each.fit >= 0.01 ? " It describes this run poorly: report epsilon and delta." : " It describes this run well.";
      return `${run}mu = ${each.shown.mu}${least} at slack ${each.shown.slack}.${fit}`;
    });
    if (finite) text.push("But for the slack, seeing the release tells at most as much as seeing one of these bells.");
    caption("mu", text.join(" "));
  } catch (error) { if (mine === measured) { drawn.delete(place); place.replaceChildren(); Form.wrong(error, runs[0], "mu"); } }
}

// ---- a claim for every way to draw batches

async function loaders(turn, claim, delta) {
  const place = by("loaders"), table = make("table"), head = make("tr"), body = make("tbody"), advice = make("p");
  for (const each of ["Batches", "Verdict", "Epsilon", "One record is"]) head.append(make("th", each, { scope: "col" }));
  const scrolls = make("div", "", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Verdict for every way to draw batches" });
  table.append(make("thead"), body);
  table.tHead.append(head);
  scrolls.append(table);
  place.className = "card";
  place.replaceChildren(make("h2", "The same claim for every way to draw batches"), scrolls, advice);
  place.hidden = false;
  const names = [...by("train-sampling").options], verdicts = [], judged = {};
  const rows = names.map((option) => {
    const row = make("tr"), wait = make("td", "computing …", { colspan: "3" });
    row.append(make("th", option.textContent.split(":")[0], { scope: "row" }), wait);
    body.append(row);
    return row;
  });
  for (const [i, option] of names.entries()) {
    let cells;
    try {
      const ran = await ask("/api/training", { ...Form.training(option.value), claim, delta }), { check } = ran;
      const upper = Chart.short(number(check.epsilon), "up"), lower = check.lower === null ? null : Chart.short(check.lower, "down");
      cells = [make("td", check.verdict, { class: `verdict ${check.verdict}` }), make("td", lower === null ? `at most ${upper}` : `${lower} to ${upper}`), make("td", ran.protects.replace("one record ", ""))];
      verdicts.push(check.verdict);
      judged[option.value] = check;
    } catch (error) { cells = [make("td", `${error.error}.`, { colspan: "3" })]; }
    if (turn !== asked) return;
    rows[i].lastChild.remove();
    rows[i].append(...cells);
  }
  advice.textContent = new Set(verdicts).size > 1 ? "The verdict depends on the loader: ask the authors how batches were drawn."
    : "The verdict is the same for every loader that could be checked.";
  if (judged.shuffled?.verdict === "false")
    advice.textContent += " What is false for a secret order is false for DataLoader(shuffle=True) too.";
}

// ---- calibration

let searched = 0;

async function calibrate() {
  const turn = ++searched;
  await Form.ready();
  const unknown = value("unknown"), run = value("run"), own = run.includes("?"), label = by("unknown").selectedOptions[0]?.textContent ?? "";
  const [epsilon, delta] = texts("target", "delta"), question = answers.calibrated = questions.calibrated(), asking = Form.asked(unknown);
  judge();
  if (asking === null) {
    by("calibrated").textContent = "The expression and the fields differ. Write ? for the number that you look for.";
    return;
  }
  by("calibrated").textContent = "Searching …";
  try {
    const found = await ask("/api/calibrate", { run: asking, epsilon, delta });
    if (turn !== searched) return;
    if (question !== questions.calibrated()) { by("calibrated").textContent = "The question has changed: calibrate again."; return; }
    by("calibrated").textContent = `Use ${own ? found.parameter : label} = ${found.value}: epsilon is at most ${Chart.short(number(found.guarantee.epsilon), "up")}`
      + (found.fails === null ? "." : `; ${found.fails} fails.`);
    if (own || !by(unknown) || (unknown === "rounds" && Form.start() !== "publish")) Form.type(asking.replace("?", found.value));
    else { by(unknown).value = String(found.value); await Form.rewrite(); }
    answers.calibrated = questions.calibrated();
    await explore();
  } catch (error) {
    if (turn === searched) { by("calibrated").textContent = ""; answers.calibrated = null; Form.wrong(error, asking, "calibrate"); }
  }
}

async function copy(what) {
  if (old("answer")) return;
  const text = what === "link" ? location.href : shown[what];
  try { await navigator.clipboard.writeText(text); by("copied").textContent = "Copied."; }
  catch { by("copied").textContent = text; }
}

// ---- wiring

function view(name) {
  for (const each of ["explore", "ledger"]) {
    by(each).hidden = each !== name;
    by(`show-${each}`).setAttribute("aria-pressed", String(each === name));
  }
  if (name === "ledger") Book.accounts();
}

function again(act) {  // asked again by itself, after a pause of the fingers
  let timer = 0;
  return () => {
    Form.right();
    clearTimeout(timer);
    timer = setTimeout(act, 250);
  };
}

const WRITING = ["train-fields", "mechanism-fields", "mechanism-more", "sampling-fields", "sampling-more", "rounds", "starts"];
// Assistive tools send only the change of a choice, so the page listens to that event too.
function listen(place, act) {
  place.addEventListener("input", act);
  place.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") act(event); });
}

listen(by("question"), (event) => {
  Form.right();
  if (["mechanism", "sampling"].includes(event.target.id)) { Form.fill(event.target.id); Form.rewrite(); }
  if (WRITING.some((id) => by(id).contains(event.target))) Form.rewrite();
  if (event.target.id === "run") Form.type(by("run").value);
  Form.show();
  judge();
});
document.addEventListener("expression", judge);
for (const [ids, act, place] of [[["attack-kind", "prior"], attack, () => by("attack-picture")], [["slack"], mu, () => picture("mu")]]) {
  const later = again(act);
  for (const id of ids) listen(by(id), () => {
    if (current && !old("answer")) { attacked += act === attack; measured += act === mu; empty(place()); if (act === mu) caption("mu", ""); }
    later();
  });
}
by("question").addEventListener("submit", (event) => { event.preventDefault(); explore(); });
for (const id of ["run", "other"]) by(id).addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); explore(); }
});
for (const [event, open] of [["beforeprint", true], ["afterprint", false]])  // on paper nothing can be unfolded
  window.addEventListener(event, () => { for (const each of document.querySelectorAll("#answer details:first-of-type")) each.open = open; });
by("calibrate").addEventListener("click", calibrate);
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button.dataset.copy));
for (const name of ["explore", "ledger"]) by(`show-${name}`).addEventListener("click", () => view(name));

async function opened() {
  const state = new URLSearchParams(location.hash.slice(1)), run = state.get("run");
  const start = ["train", "publish", "review"].find((each) => each === state.get("start")) || (run ? "publish" : "train");
  by(`start-${start}`).checked = true;
  for (const name of Form.TRAINING) if (state.has(name)) by(`train-${name}`).value = state.get(name);
  if (state.get("delta")) by("delta").value = state.get("delta");
  if (state.get("claim")) by("claim").value = state.get("claim");
  by("other").value = state.get("other") || "";
  by("comparison").open = Boolean(state.get("other"));
  Form.show();
  await Form.rewrite();
  if (run && run !== value("run")) { Form.right(); Form.type(run); }
  explore();
}
window.addEventListener("hashchange", opened);
Form.offer().then(opened);
