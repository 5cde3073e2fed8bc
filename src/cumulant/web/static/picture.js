// Pictures for people who do not read curves: the interval of epsilon, guesses as dots, two bells for mu.
"use strict";

const Picture = (() => {
  const { make, axis, short } = Chart;

  // rows: [{ name, lower, upper, shown: { lower, upper } }], all on one scale; claim: { value, shown } or null.
  function interval(place, rows, claim) {
    const width = Math.max(280, place.clientWidth), LEFT = 66, RIGHT = 66, ROW = 46, TOP = claim ? 26 : 8, NAME = 126;
    const finite = [...rows.map((row) => row.upper), claim?.value].filter((each) => Number.isFinite(each));
    const most = Math.max(...finite, 1e-300) * 1.08, bottom = TOP + ROW * rows.length;
    const scale = axis(0, most, false, width < 500 ? 4 : 8), px = (x) => LEFT + scale.at(x) * (width - LEFT - RIGHT);
    const said = rows.map((row) => `${row.name}true epsilon ${row.shown.lower === null ? "at most" : `between ${row.shown.lower} and`} ${row.shown.upper}`);
    const svg = make("svg", { viewBox: `0 0 ${width} ${bottom + 40}`, width, height: bottom + 40, role: "img", class: "interval",
      "aria-label": said.join("; ") + (claim ? `; claimed ${claim.shown}` : "") });
    for (const tick of scale.ticks) {
      svg.append(make("line", { class: "grid", x1: px(tick), x2: px(tick), y1: TOP, y2: bottom }));
      svg.append(make("text", { x: px(tick), y: bottom + 15, "text-anchor": "middle" }, short(tick)));
    }
    svg.append(make("line", { class: "frame", x1: LEFT, x2: width - RIGHT, y1: bottom, y2: bottom }));
    svg.append(make("text", { class: "title", x: (LEFT + width - RIGHT) / 2, y: bottom + 33, "text-anchor": "middle" }, "epsilon"));
    rows.forEach((row, i) => {
      const kind = i ? "two" : "one", y = TOP + ROW * i + 12, middle = y + 16;
      if (!Number.isFinite(row.upper)) {
        svg.append(make("text", { class: "end", x: LEFT, y: middle }, "no finite epsilon is known"));
        return;
      }
      const known = row.shown.lower !== null, left = known ? px(row.lower) : LEFT, right = px(row.upper);
      svg.append(make("rect", { class: `band ${kind} ${known ? "solid" : "open"}`, x: Math.min(left, right - 3), y, width: Math.max(right - left, 3), height: 22 }));
      if (known) svg.append(make("text", { class: "end", x: Math.min(left, right - 3) - 5, y: middle, "text-anchor": "end" }, row.shown.lower));
      else if (right - left > 150) {
        const line = claim ? px(claim.value) : 0, crossed = line > LEFT && line < LEFT + NAME + 8;
        if (!crossed || right - line > NAME + 16) svg.append(make("text", { x: crossed ? line + 8 : LEFT + 8, y: middle }, "no lower end is known"));
      }
      const past = claim ? px(claim.value) : 0;  // the number stands beyond a line that would cross it
      svg.append(make("text", { class: "end", x: (past > right && past < right + 50 ? past : right) + 5, y: middle }, row.shown.upper));
    });
    if (claim) {
      const x = px(claim.value), anchor = x > width - 120 ? "end" : "start";
      svg.append(make("line", { class: "claim", x1: x, x2: x, y1: TOP - 8, y2: bottom }));
      svg.append(make("text", { class: "claim", x: x + (anchor === "end" ? -5 : 5), y: TOP - 10, "text-anchor": anchor }, `claimed ${claim.shown}`));
    }
    place.replaceChildren(svg);
  }

  const GRIDS = [[10, 10], [40, 25], [40, 25]];  // columns and rows for 100, 1000 and more guesses

  // Of so many guesses, how many are right without the release and how many more with it, both rounded up.
  function guesses(prior, success) {
    let total = 100;
    while (prior * total < 0.999 && total < 1e6) total *= 10;
    const up = (share) => Math.min(total, Math.ceil(share * total * (1 - 1e-12)));
    return { total, before: up(prior), after: Math.max(up(prior), up(success)) };
  }

  function people(place, prior, success, which) {
    const { total, before, after } = guesses(prior, success);
    const [columns, rows] = GRIDS[Math.min(GRIDS.length - 1, Math.log10(total) - 2)];
    const dots = columns * rows, each = total / dots, step = columns === 10 ? 24 : 10, radius = step * 0.38;
    const svg = make("svg", { viewBox: `0 0 ${columns * step} ${rows * step}`, class: `people ${columns === 10 ? "few" : "many"}`, role: "img",
      "aria-label": `of ${total} guesses ${before} are right without the release and at most ${after} with it` });
    for (let i = 0; i < dots; i++) {
      const kind = i < Math.ceil(before / each) ? "before" : i < Math.ceil(after / each) ? `gain ${which}` : "none";
      svg.append(make("circle", { class: kind, cx: (i % columns + 0.5) * step, cy: (Math.floor(i / columns) + 0.5) * step, r: radius }));
    }
    place.append(svg);
    return { total, before, after, each };
  }

  // The bell of N(0, 1) and one bell N(mu, 1) for each run; two words name the data behind them.
  function bells(place, mus, [before, after]) {
    const width = Math.max(280, place.clientWidth), height = 190, LEFT = 10, BOTTOM = 42, TOP = 22;
    const finite = mus.filter((mu) => Number.isFinite(mu));
    const low = -3.5, high = Math.max(0, ...finite) + 3.5;
    const px = (x) => LEFT + (x - low) / (high - low) * (width - 2 * LEFT), py = (y) => height - BOTTOM - y * (height - TOP - BOTTOM);
    const line = (mu) => Array.from({ length: 161 }, (_, i) => {
      const x = low + (high - low) * i / 160;
      return `${px(x)},${py(Math.exp(-((x - mu) ** 2) / 2))}`;
    }).join(" ");
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `two bell curves, ${finite.map((mu) => short(mu, "up")).join(" and ")} apart` });
    svg.append(make("polygon", { class: "bell", points: `${px(low)},${py(0)} ${line(0)} ${px(high)},${py(0)}` }));
    finite.forEach((mu, i) => {
      const kind = mus.indexOf(mu) && i ? "two" : "one";
      svg.append(make("polygon", { class: `band ${kind}`, points: `${px(low)},${py(0)} ${line(mu)} ${px(high)},${py(0)}` }));
      svg.append(make("polyline", { class: `curve ${kind}`, points: line(mu) }));
    });
    svg.append(make("line", { class: "frame", x1: LEFT, x2: width - LEFT, y1: py(0), y2: py(0) }));
    finite.forEach((mu, i) => {  // the distance of the two peaks
      if (px(mu) - px(0) < 8) return;
      const y = height - BOTTOM + 8 + 5 * i, kind = i ? "two" : "one";
      svg.append(make("line", { class: `curve ${kind}`, x1: px(0), x2: px(mu), y1: y, y2: y }));
      if (!i) svg.append(make("text", { class: "one", x: (px(0) + px(mu)) / 2, y: y + 10 + 5 * finite.length, "text-anchor": "middle" }, "mu"));
    });
    svg.append(make("text", { class: "title", x: width - LEFT, y: height - 8, "text-anchor": "end" }, "what the attacker sees"));
    const LETTER = 7, peak = px(finite[0] ?? 0);  // pixels of a letter, at most: a word that would be cut starts at the edge
    svg.append(px(0) - 6 < before.length * LETTER ? make("text", { x: 0, y: TOP - 8 }, before)
      : make("text", { x: px(0) - 6, y: TOP - 8, "text-anchor": "end" }, before));
    svg.append(peak + 6 + after.length * LETTER > width ? make("text", { class: "one", x: width, y: TOP - 8, "text-anchor": "end" }, after)
      : make("text", { class: "one", x: peak + 6, y: TOP - 8 }, after));
    place.replaceChildren(svg);
  }

  return { interval, people, bells, guesses };
})();
