// The ledger: accounts, who spent what, the history, and spending for those who know the token.
"use strict";

const Book = (() => {
  let account = null, charging = false;
  let listed = 0, counted = 0, looked = 0, verified = 0;  // questions of each kind: only the last answer is shown
  const share = (used) => `${Math.min(100, Math.ceil(Number((used * 1000).toFixed(9))) / 10)} %`;

  const when = (time) => `${(time || "").slice(0, 16).replace("T", " ")}${/\+00:00$/.test(time) ? " UTC" : ""}`;

  function bar(used) {
    const part = used === "inf" ? 1 : Math.min(used, 1);
    const found = Chart.make("svg", { class: "bar", role: "img", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-label": `${share(part)} of the budget` });
    found.append(Chart.make("rect", { class: "used", width: 100 * part, height: 4 }));
    return found;
  }

  function card(each) {
    const box = make("div", "", { class: "card" });
    const adaptive = each.mode === "adaptive";  // the other rules prove no epsilon that is smaller than the budget's
    const spent = adaptive ? ` Epsilon so far: ${each.spent === "inf" ? "∞" : Chart.short(each.spent, "up")}.` : "";
    const held = each.used - each.used_without_held;
    const state = each.state === "imported" ? "imported (frozen)" : each.state;
    box.append(make("h3", each.account), make("p", `Budget: epsilon ${each.epsilon} at delta ${each.delta}, for one ${each.unit}. The account is ${state}.`),
      bar(each.used), make("p", each.plan.length ? `Entries: ${each.entries}.`
        : `${share(each.used === "inf" ? 1 : each.used)} of what its rule allows is used${held > 0 ? `, of which ${share(held)} is held` : ""}.${spent} Entries: ${each.entries}.`));
    for (const { run, planned, ran } of each.plan) box.append(make("p", `${ran} of ${planned} planned ${run} charged or held.`));
    if (each.fits !== null) box.append(make("p", `${adaptive ? "About " : ""}${each.fits} more of ${each.like} fit.`));
    for (const held of each.holds) box.append(make("p", `${held.actor} holds budget for ${held.run} since ${when(held.time)}.`));
    const open = make("button", `History of ${each.account}`, { type: "button" });
    open.addEventListener("click", () => { account = each.account; by("receipt").textContent = ""; by("history").replaceChildren(); by("history-view").hidden = false; spenders(); past(); });
    box.append(open);
    return box;
  }

  async function accounts() {
    const turn = ++listed;
    by("ledger-problem").hidden = true;
    try {
      const found = await ask("/api/ledger");
      if (turn !== listed) return;
      by("spending").hidden = !found.spending;
      by("accounts").replaceChildren(...found.accounts.map(card));
      if (found.accounts.length < found.all)
        by("accounts").append(make("p", `These are the first ${found.accounts.length} of ${found.all} accounts. cumulant ledger status shows all.`));
      if (!found.accounts.length) by("accounts").append(make("p", "There is no account yet."));
    } catch (error) {
      if (turn !== listed) return;
      by("ledger-problem").textContent = error.error;
      by("ledger-problem").hidden = false;
    }
  }

  function rows(place, names, caption, cells) {
    const table = make("table"), head = make("tr"), body = make("tbody");
    for (const each of names) head.append(make("th", each, { scope: "col" }));
    table.append(make("caption", caption), make("thead"), body);
    table.tHead.append(head);
    for (const each of cells) {
      const row = make("tr");
      row.append(...each);
      body.append(row);
    }
    place.replaceChildren(table);
  }

  async function spenders() {
    const name = account, turn = ++counted;
    by("spenders-title").textContent = `Who spent what of ${name}`;
    by("spenders").replaceChildren(make("p", "Reading the entries …"));
    try {
      const found = await ask(`/api/ledger/spenders?${new URLSearchParams({ account: name })}`);
      if (turn !== counted) return;
      const all = found.looked < found.all ? `The newest ${found.looked} of ${found.all} entries. ` : "";
      rows(by("spenders"), ["Who", "Part of the budget", "Charges", "Last", "Most often"], `${all}A part is what these charges would use alone; parts need not add up.`, found.spenders.map((each) => {
        const part = make("td"), runs = make("td", "", { class: "code" });
        part.append(bar(each.used), make("span", share(each.used)));
        for (const [run, times] of each.runs) runs.append(make("div", `${times} × ${run}`));
        if (each.kinds > each.runs.length) runs.append(make("div", `and ${each.kinds - each.runs.length} other runs`));
        return [make("th", each.actor, { scope: "row" }), part, make("td", String(each.times)), make("td", when(each.newest)), runs];
      }));
      if (!found.spenders.length) by("spenders").replaceChildren(make("p", "Nobody has spent anything yet."));
    } catch (error) { if (turn === counted) by("spenders").replaceChildren(make("p", error.error)); }
  }

  async function past(before = null) {
    const turn = ++looked;
    by("history-title").textContent = `History of ${account}`;
    by("history").classList.add("stale");  // rows of an older search
    try {
      const asked = { account, search: by("search").value };
      if (before !== null) asked.before = before;
      const found = await ask(`/api/ledger/history?${new URLSearchParams(asked)}`);
      if (turn !== looked) return;
      by("history").classList.remove("stale");
      const more = found.next === null ? "" : `, and more below entry ${found.next}`;
      rows(by("history"), ["Entry", "Kind", "When", "Who", "Run", "Receipt"], `${found.entries.length} of ${found.all} entries${more}`, found.entries.map((each) => {
        const cell = make("td"), copy = make("button", "Copy", { type: "button", "aria-label": `Copy the receipt of entry ${each.seq}` });
        copy.addEventListener("click", async () => {
          const text = JSON.stringify({ account, seq: each.seq, hash: each.hash, kind: each.kind, key: each.key });
          try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch { copy.textContent = text; }
        });
        cell.append(copy);
        return [make("td", String(each.seq)), make("td", each.kind), make("td", when(each.time)), make("td", each.actor), make("td", each.run || "", { class: "code" }), cell];
      }));
      if (before !== null) by("history").prepend(button("Newest entries", () => past()));
      if (found.next !== null) by("history").append(button("Older entries", () => past(found.next)));
    } catch (error) {
      if (turn !== looked) return;
      by("history").classList.remove("stale");
      by("history").replaceChildren(make("p", error.error));
    }
  }

  function button(text, act) {
    const made = make("button", text, { type: "button" });
    made.addEventListener("click", act);
    return made;
  }

  const unanswered = new Map();  // the key of each request that may have been charged and has no answer
  const fresh = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // A second click while the first one is answered would be a second charge, under another key.
  async function spend(event) {
    event.preventDefault();
    if (charging) return;
    const name = account, run = by("spend-run").value, button = by("spending").querySelector("button");
    const say = (text) => { by("receipt").textContent = name === account && run === by("spend-run").value ? text : `Answer for ${run} in ${name}: ${text}`; };
    const request = JSON.stringify([name, run]);
    if (!unanswered.has(request)) unanswered.set(request, fresh());
    charging = button.disabled = true;
    by("receipt").textContent = "Charging …";
    try {
      const found = await ask("/api/ledger/spend", { account: name, run, key: unanswered.get(request) }, { authorization: `Bearer ${by("token").value}` });
      unanswered.delete(request);
      say(`Receipt: ${JSON.stringify(found)}`);
      verified += 1;
      by("verdict").textContent = "";
    } catch (error) {
      const answered = error.status < 500 && error.status !== 413 && error.status !== 429;
      if (answered) unanswered.delete(request);
      if (error.receipt)  // an earlier click was charged, and the server that lost its answer was started again
        say(`An earlier click was charged, as entry ${error.receipt.seq}. Nothing was charged now. Receipt: ${JSON.stringify(error.receipt)}`);
      else say(answered ? error.error : `${error.error} (Click Spend again: it sends the same key, so nothing is charged twice.)`);
      if (!error.receipt) return;
    } finally { charging = button.disabled = false; }
    await accounts();
    await Promise.all([spenders(), past()]);
  }

  by("search").addEventListener("input", () => past());
  by("spend-run").addEventListener("input", () => { by("receipt").textContent = ""; });
  by("spending").addEventListener("submit", spend);
  by("verify").addEventListener("click", async () => {
    const turn = ++verified;
    by("verdict").textContent = "Verifying …";
    const said = await ask("/api/ledger/verify", {}).then((found) => found.said, (error) => error.error);
    if (turn === verified) by("verdict").textContent = said;
  });

  return { accounts };
})();
