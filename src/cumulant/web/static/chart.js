// Line charts with axis titles, a legend and the values under the pointer; part of cumulant, Apache-2.0. No dependencies.
"use strict";

const Chart = (() => {
  const HEIGHT = 300, LEFT = 62, RIGHT = 18, TOP = 14, BOTTOM = 48;
  const DIGITS = 4;  // shown digits; the last one is rounded outward
  const number = (value) => value === "inf" ? Infinity : value;

  // "up" never shows less than the value, "down" never more; ticks are rounded to the nearest.
  function short(value, way = "") {
    if (!Number.isFinite(value)) return "∞";
    let shown = Number(value.toPrecision(DIGITS));
    if (way && value !== 0) {
      const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - DIGITS + 1);
      if (way === "up" && shown < value) shown = Number((shown + unit).toPrecision(DIGITS));
      if (way === "down" && shown > value) shown = Number((shown - unit).toPrecision(DIGITS));
    }
    if (shown !== 0 && (Math.abs(shown) < 1e-3 || Math.abs(shown) >= 1e5))
      return shown.toExponential(DIGITS - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(shown);
  }

  const make = (name, attributes = {}, text = "") => {
    const found = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    if (text) found.textContent = text;
    return found;
  };

  function axis(low, high, logarithmic, most = 6) {
    const ticks = [];
    if (logarithmic) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      if (last - first >= 2) {
        const step = Math.max(1, Math.ceil((last - first) / most));
        for (let k = first; k <= last; k += step) ticks.push(10 ** k);
      } else {
        const few = high / low < 10 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5];
        for (let k = first - 1; k <= last; k++) for (const m of few) {
          const tick = m * 10 ** k;
          if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
        }
      }
      return { at: (v) => (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low)), ticks };
    }
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
    return { at: (v) => (v - low) / (high - low), ticks };
  }

  const LEGEND = { upper: "upper bound", lower: "lower bound", attack: "members found at most", guess: "blind guessing", claim: "claimed" };
  const ONCE = new Set(["guess", "claim"]);  // lines that belong to no run
  const WAYS = { upper: "up", lower: "down", attack: "up" };

  function curves(charts, logarithmic) {
    const lines = [];
    charts.forEach((chart, which) => {
      for (const [name, curve] of Object.entries(chart.curves)) {
        if (!(name in LEGEND) || (which && ONCE.has(name))) continue;
        const points = curve.x.map((x, i) => [number(x), number(curve.y[i])])
          .filter(([x, y]) => x > 0 && Number.isFinite(y) && (!logarithmic || y > 0));
        const style = name === "guess" ? "quiet" : name === "claim" ? "claimed" : (which ? "two" : "one") + (name === "lower" ? " lower" : "");
        const run = charts.length > 1 && !ONCE.has(name) ? (which ? "second run, " : "first run, ") : "";
        if (points.length) lines.push({ name, which, points, style, label: run + LEGEND[name] });
      }
    });
    return lines;
  }

  function legend(lines) {
    const list = document.createElement("ul");
    list.className = "legend";
    for (const { style, label } of lines) {
      const item = document.createElement("li"), swatch = make("svg", { viewBox: "0 0 26 8", width: 26, height: 8, "aria-hidden": "true" });
      swatch.append(make("line", { class: `curve ${style}`, x1: 0, x2: 26, y1: 4, y2: 4 }));
      item.append(swatch, label);
      list.append(item);
    }
    return list;
  }

  // charts: one or two results of /api/chart; titles: { x, y } of the axes; logarithmic: how the vertical axis runs.
  // Returns the drawn lines; none if nothing is finite.
  function draw(place, charts, titles, logarithmic) {
    const lines = curves(charts, logarithmic);
    place.replaceChildren();
    if (!lines.length) return lines;
    const width = Math.max(280, place.clientWidth);
    const xs = lines.flatMap((l) => l.points.map((p) => p[0])), ys = lines.flatMap((l) => l.points.map((p) => p[1]));
    const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 * 1.0001);
    const y0 = logarithmic ? Math.min(...ys) : 0;
    let y1 = Math.max(...ys);
    if (y1 <= y0) y1 = y0 ? y0 * 1.1 : 1;
    const across = axis(x0, x1, true, width < 400 ? 4 : 6), up = axis(y0, y1, logarithmic);
    const px = (x) => LEFT + across.at(x) * (width - LEFT - RIGHT), py = (y) => HEIGHT - BOTTOM - up.at(y) * (HEIGHT - TOP - BOTTOM);
    const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", tabindex: "0",
      "aria-label": `${titles.y} against ${titles.x}; arrow keys read the values` });
    for (const tick of across.ticks) {
      svg.append(make("line", { class: "grid", x1: px(tick), x2: px(tick), y1: TOP, y2: HEIGHT - BOTTOM }));
      svg.append(make("text", { x: px(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, short(tick)));
    }
    for (const tick of up.ticks) {
      svg.append(make("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: py(tick), y2: py(tick) }));
      svg.append(make("text", { x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" }, short(tick)));
    }
    svg.append(make("rect", { class: "frame", x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }));
    svg.append(make("text", { class: "title", x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, titles.x));
    const middle = (TOP + HEIGHT - BOTTOM) / 2;
    svg.append(make("text", { class: "title", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, titles.y));
    for (const which of [0, 1]) {  // the interval as a band
      const upper = lines.find((l) => l.which === which && l.name === "upper"), lower = lines.find((l) => l.which === which && l.name === "lower");
      if (upper && lower) {
        const known = upper.points.filter(([x]) => lower.points.some(([at]) => at === x));  // elsewhere there is no lower end
        const around = [...known, ...[...lower.points].reverse()].map(([x, y]) => `${px(x)},${py(y)}`);
        svg.append(make("polygon", { class: `band ${which ? "two" : "one"}`, points: around.join(" ") }));
      }
    }
    for (const { style, points } of lines)
      svg.append(make("polyline", { class: `curve ${style}`, points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") }));
    charts.forEach(({ marked }, which) => {  // the question
      const [x, y] = (marked || []).map(number);
      if (x >= x0 && x <= x1 && Number.isFinite(y)) {
        svg.append(make("line", { class: "asked", x1: px(x), x2: px(x), y1: TOP, y2: HEIGHT - BOTTOM }));
        svg.append(make("circle", { class: `asked ${which ? "two" : "one"}`, cx: px(x), cy: py(y), r: 4 }));
      }
    });
    const cursor = make("g", { class: "cursor", visibility: "hidden" });
    svg.append(cursor);
    const status = document.createElement("p");
    status.className = "hidden values";
    status.setAttribute("role", "status");
    const places = [...new Set(lines[0].points.map((p) => p[0]))];
    let here = -1;
    const tell = (index) => {
      here = Math.max(0, Math.min(places.length - 1, index));
      const x = places[here];
      const near = lines.map(({ points }) => points.reduce((a, b) => Math.abs(Math.log(b[0] / x)) < Math.abs(Math.log(a[0] / x)) ? b : a));
      const said = [`at ${short(x)}`, ...lines.map(({ name, label }, i) => `${label} ${short(near[i][1], WAYS[name])}`)];
      const wide = 14 + 6.6 * Math.max(...said.map((each) => each.length)), tall = 10 + 16 * said.length;
      const left = px(x) + wide + 12 < width - RIGHT ? px(x) + 10 : Math.max(2, px(x) - wide - 10);
      cursor.replaceChildren(make("line", { x1: px(x), x2: px(x), y1: TOP, y2: HEIGHT - BOTTOM }));
      lines.forEach(({ which, name }, i) => { if (name !== "guess") cursor.append(make("circle", { class: which ? "two" : "one", cx: px(x), cy: py(near[i][1]), r: 3.5 })); });
      cursor.append(make("rect", { class: "box", x: left, y: TOP + 4, width: wide, height: tall, rx: 4 }));
      said.forEach((each, i) => cursor.append(make("text", { class: "value", x: left + 7, y: TOP + 20 + 16 * i }, each)));
      cursor.setAttribute("visibility", "visible");
      status.textContent = said.join(", ");
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * width;
      tell(places.reduce((best, p, i) => Math.abs(px(p) - x) < Math.abs(px(places[best]) - x) ? i : best, 0));
    });
    svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); tell(here + step); }
    });
    place.append(svg, legend(lines), status);
    return lines;
  }

  return { draw, short, axis, make };
})();
