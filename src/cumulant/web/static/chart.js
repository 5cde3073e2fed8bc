// Line charts with values under the pointer; part of cumulant, Apache-2.0. No dependencies.
"use strict";

const Chart = (() => {
  const W = 460, H = 300, LEFT = 58, RIGHT = 22, TOP = 12, BOTTOM = 42;
  const number = (value) => value === "inf" ? Infinity : value;
  const short = (value) => {
    if (!Number.isFinite(value)) return "∞";
    if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(2).replace(/\.?0+e/, "e");
    return String(Number(value.toPrecision(4)));
  };
  const make = (name, attributes = {}, text = "") => {
    const found = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    if (text) found.textContent = text;
    return found;
  };

  function axis(low, high, logarithmic) {
    const ticks = [];
    if (logarithmic) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      if (last - first >= 2) {
        const step = Math.max(1, Math.ceil((last - first) / 6));
        for (let k = first; k <= last; k += step) ticks.push(10 ** k);
      } else {
        for (let k = first - 1; k <= last; k++) for (const m of [1, 2, 5]) {
          const tick = m * 10 ** k;
          if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
        }
      }
      return { at: (v) => (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low)), ticks };
    }
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
    return { at: (v) => (v - low) / (high - low), ticks };
  }

  // charts: one or two results of /api/chart with the same axes; logarithmic says how the vertical axis runs
  function draw(place, charts, logarithmic) {
    const lines = [];
    charts.forEach((chart, which) => {
      for (const [name, curve] of Object.entries(chart.curves)) {
        if (name === "rdp" || (which && name === "guess")) continue;
        const points = curve.x.map((x, i) => [number(x), number(curve.y[i])])
          .filter(([x, y]) => x > 0 && Number.isFinite(y) && (!logarithmic || y > 0));
        if (points.length) lines.push({ name, which, points });
      }
    });
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const xs = lines.flatMap((l) => l.points.map((p) => p[0])), ys = lines.flatMap((l) => l.points.map((p) => p[1]));
    const title = charts[0].title;
    caption.textContent = lines.length ? title : `${title}: nothing finite to draw`;
    figure.append(caption);
    place.append(figure);
    if (!lines.length) return;
    const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 * 1.0001);
    let y0 = logarithmic ? Math.min(...ys) : 0, y1 = Math.max(...ys);
    if (y1 <= y0) y1 = y0 ? y0 * 1.1 : 1;
    const across = axis(x0, x1, true), up = axis(y0, y1, logarithmic);
    const px = (x) => LEFT + across.at(x) * (W - LEFT - RIGHT), py = (y) => H - BOTTOM - up.at(y) * (H - TOP - BOTTOM);
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: "0",
      "aria-label": `${title}; ${charts[0].y} against ${charts[0].x}; arrow keys read the values` });
    for (const tick of across.ticks) {
      svg.append(make("line", { class: "grid", x1: px(tick), x2: px(tick), y1: TOP, y2: H - BOTTOM }));
      svg.append(make("text", { x: px(tick), y: H - BOTTOM + 15, "text-anchor": "middle" }, short(tick)));
    }
    for (const tick of up.ticks) {
      svg.append(make("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: py(tick), y2: py(tick) }));
      svg.append(make("text", { x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" }, short(tick)));
    }
    svg.append(make("rect", { class: "frame", x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }));
    svg.append(make("text", { x: (LEFT + W) / 2, y: H - 8, "text-anchor": "middle" },
      charts[0].x.length > 60 ? `${charts[0].x.slice(0, 59)}…` : charts[0].x));
    for (const { name, which, points } of lines) {
      const kind = name === "guess" ? "quiet" : (which ? "two" : "one") + (name === "lower" ? " lower" : "");
      svg.append(make("polyline", { class: `curve ${kind}`, points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") }));
    }
    charts.forEach(({ marked }, which) => {  // what was asked about
      const [x, y] = (marked || []).map(number);
      if (x >= x0 && x <= x1 && Number.isFinite(y)) {
        svg.append(make("line", { class: "asked", x1: px(x), x2: px(x), y1: TOP, y2: H - BOTTOM }));
        svg.append(make("circle", { class: `asked ${which ? "two" : "one"}`, cx: px(x), cy: py(y), r: 4 }));
      }
    });
    const cursor = make("line", { class: "cursor", y1: TOP, y2: H - BOTTOM, visibility: "hidden" });
    svg.append(cursor);
    const places = [...new Set(lines[0].points.map((p) => p[0]))];
    let here = -1;
    const tell = (index) => {
      here = Math.max(0, Math.min(places.length - 1, index));
      const x = places[here];
      cursor.setAttribute("x1", px(x)); cursor.setAttribute("x2", px(x)); cursor.setAttribute("visibility", "visible");
      const said = lines.map(({ name, which, points }) => {
        const near = points.reduce((a, b) => Math.abs(Math.log(b[0] / x)) < Math.abs(Math.log(a[0] / x)) ? b : a);
        return `${charts.length > 1 ? (which ? "other " : "first ") : ""}${name} ${short(near[1])}`;
      });
      caption.textContent = `${title}. At ${short(x)}: ${said.join(", ")}`;
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * W;
      tell(places.reduce((best, p, i) => Math.abs(px(p) - x) < Math.abs(px(places[best]) - x) ? i : best, 0));
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); tell(here + step); }
    });
    figure.prepend(svg);
  }

  return { draw, short };
})();
