/* Pictures of the live figures, in SVG: drawn again at each change and when the width changes. Lengths are pixels.

   lab.picture({height: 200, draw(pen) { ...; return "What a blind reader needs."; }}) is an
   element. pen.width is what there is. Colors have names (ink, faint, rule, paper, blue, orange, green, purple, sky,
   amber, gray), which labs.css sets for each theme; give lines and points a second cue: dash, shape. */

(() => {
  "use strict";

  const make = abeLabs.element, SVG = "http://www.w3.org/2000/svg";

  function color(name) { return `var(--abe-${name})`; }

  /* Round numbers between low and high, about as many as asked for. */
  function ticks(low, high, about) {
    const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(+(i * step).toPrecision(12));
    return found;
  }

  function tickText(value) { return String(value).replace("-", "−"); }

  function scale(range, from, to) {
    return (value) => from + (to - from) * (value - range[0]) / (range[1] - range[0]);
  }

  function makePen(svg, width, height) {
    const pen = {svg, width, height};

    pen.add = (tag, attributes, text) => {
      const made = document.createElementNS(SVG, tag);
      Object.keys(attributes).forEach((key) => {
        if (attributes[key] !== undefined) made.setAttribute(key, attributes[key]);
      });
      if (text !== undefined) made.textContent = text;
      svg.append(made);
      return made;
    };

    /* options: size (12; at least 11), anchor (start, middle, end), color, weight, turn (degrees), halo (true: of
       paper around the letters, over points). */
    pen.text = (x, y, text, o = {}) => {
      return pen.add("text", {
        x, y, "text-anchor": o.anchor || "start", "dominant-baseline": "central",
        transform: o.turn ? `rotate(${o.turn} ${x} ${y})` : undefined,
        style: `fill:${color(o.color || "ink")};font-size:${Math.max(o.size || 12, 11)}px;font-weight:${o.weight || 400}` +
          (o.halo ? `;paint-order:stroke;stroke:${color("paper")};stroke-width:4px` : "")
      }, text);
    };

    /* Through points [[x, y], ...]. options: color, width, dash ("4 3"), fill (a color), opacity. */
    pen.path = (points, o = {}) => {
      const d = typeof points === "string" ? points : `M${points.map((p) => `${p[0].toFixed(2)} ${p[1].toFixed(2)}`).join("L")}`;
      return pen.add("path", {
        d, "stroke-dasharray": o.dash, "stroke-linejoin": "round", "stroke-linecap": o.dash ? "butt" : "round",
        style: "fill:" + (o.fill ? color(o.fill) : "none") + ";stroke:" + (o.color ? color(o.color) : "none") +
          ";stroke-width:" + (o.width || 2) + ";opacity:" + (o.opacity === undefined ? 1 : o.opacity)
      });
    };

    pen.line = (x1, y1, x2, y2, options) => pen.path([[x1, y1], [x2, y2]], {color: "rule", width: 1, ...options});

    /* options: color, opacity, edge (a color), radius. */
    pen.rect = (x, y, w, h, o = {}) => {
      return pen.add("rect", {
        x, y, width: Math.max(w, 0), height: Math.max(h, 0), rx: o.radius,
        style: "fill:" + color(o.color || "blue") + ";fill-opacity:" + (o.opacity === undefined ? 1 : o.opacity) +
          ";stroke:" + (o.edge ? color(o.edge) : "none")
      });
    };

    /* A point. options: shape (circle, square, diamond, triangle), size (its radius), color, edge, opacity, hollow. */
    pen.mark = (x, y, o = {}) => {
      const r = o.size || 4;
      const corners = {square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
        triangle: [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]]}[o.shape];
      const style = "fill:" + color(o.hollow ? "paper" : o.color || "blue") + ";stroke:" +
        color(o.hollow ? o.color || "blue" : o.edge || "paper") + ";stroke-width:" + (o.hollow ? 2 : 1) +
        ";opacity:" + (o.opacity === undefined ? 1 : o.opacity);
      if (!corners) return pen.add("circle", {cx: x, cy: y, r, style});
      const points = corners.map((c) => `${x + c[0] * r},${y + c[1] * r}`);
      return pen.add("polygon", {points: points.join(" "), style});
    };

    /* Axes, and where values lie on them: {x(value), y(value), left, right, top, bottom}. options: box ({left, right,
       top, bottom} in pixels, with room for the letters inside), x and y ([low, high]), xLabel, yLabel (above the
       axis), xTicks, yTicks (lists), xText, yText (of a tick), grid (false: without lines). */
    pen.axes = (options) => {
      const o = options, box = Object.assign({left: 0, right: width, top: 0, bottom: height}, o.box);
      const yTicks = o.yTicks || ticks(o.y[0], o.y[1], 4), xTicks = o.xTicks || ticks(o.x[0], o.x[1], 5);
      const yText = o.yText || tickText, xText = o.xText || tickText;
      const longest = Math.max(...yTicks.map((t) => yText(t).length).concat(0));
      const left = box.left + 8 + 7 * longest, top = box.top + (o.yLabel ? 24 : 8);
      const right = box.right - 8, bottom = box.bottom - (xTicks.length ? 20 : 4) - (o.xLabel ? 18 : 0);
      const plot = {left, right, top, bottom};
      plot.x = scale(o.x, left, right);
      plot.y = scale(o.y, bottom, top);
      yTicks.forEach((t) => {
        if (o.grid !== false) pen.line(left, plot.y(t), right, plot.y(t));
        pen.text(left - 6, plot.y(t), yText(t), {anchor: "end", color: "faint"});
      });
      xTicks.forEach((t) => {
        pen.text(plot.x(t), bottom + 12, xText(t), {anchor: "middle", color: "faint"});
      });
      pen.line(left, bottom, right, bottom, {color: "faint"});
      if (o.yLabel) pen.text(box.left, box.top + 8, o.yLabel, {color: "ink"});
      if (o.xLabel) pen.text(right, box.bottom - 8, o.xLabel, {anchor: "end", color: "ink"});
      return plot;
    };

    /* A bar from 0 for each value, at x = 0, 1, 2, ... or options.at. options: color (a name, or one for each), width (of 1). */
    pen.bars = (plot, values, o = {}) => {
      const w = (o.width || 0.8) * Math.abs(plot.x(1) - plot.x(0));
      values.forEach((value, i) => {
        const x = plot.x(o.at ? o.at[i] : i), ends = [plot.y(value), plot.y(0)].sort((a, b) => a - b);
        pen.rect(x - w / 2, ends[0], w, ends[1] - ends[0], {color: Array.isArray(o.color) ? o.color[i] : o.color, opacity: o.opacity});
      });
    };

    /* A curve through points [[x, y], ...] of the axes. options as for path. */
    pen.curve = (plot, points, options) => pen.path(points.map((p) => [plot.x(p[0]), plot.y(p[1])]), {color: "blue", ...options});

    /* A matrix of numbers from 0 to 1 as squares. options: x, y, size (of a square), color, rows and columns (names),
       digits (write the numbers, too), gap(i, j): true leaves a place empty. */
    pen.heat = (matrix, options) => {
      const o = options, s = o.size;
      matrix.forEach((row, i) => {
        row.forEach((value, j) => {
          const x = o.x + j * s, y = o.y + i * s, empty = o.gap?.(i, j);
          pen.rect(x, y, s - 1, s - 1, {color: empty ? "paper" : o.color || "blue", opacity: empty ? 1 : Math.min(Math.max(value, 0), 1), edge: "rule"});
          if (o.digits !== undefined && !empty) {
            pen.text(x + s / 2, y + s / 2, abeLabs.fixed(value, o.digits), {anchor: "middle", color: value > 0.55 ? "paper" : "ink"});
          }
        });
        if (o.rows) pen.text(o.x - 6, o.y + (i + 0.5) * s, o.rows[i], {anchor: "end"});
      });
      (o.columns || []).forEach((name, j) => { pen.text(o.x + (j + 0.5) * s, o.y - 6, name, {turn: -60}); });
    };

    /* A legend in a row, which wraps: entries {text, color, dash, shape}; returns the height that it took. */
    pen.key = (x, y, entries) => {
      let at = x, line = y;
      entries.forEach((entry) => {
        const length = 30 + 6.6 * entry.text.length;
        if (at > x && at + length > width) { at = x; line += 20; }
        if (entry.shape) pen.mark(at + 10, line, {shape: entry.shape, color: entry.color, size: 5});
        else pen.line(at, line, at + 20, line, {color: entry.color, dash: entry.dash, width: 3});
        pen.text(at + 26, line, entry.text);
        at += length + 14;
      });
      return line - y + 20;
    };
    return pen;
  }

  abeLabs.extend((lab) => {
    /* An element with a drawing in it. options: draw(pen) draws and returns the alt text; height in pixels, or
       height(width). */
    lab.picture = (options) => {
      const box = make("div", {class: "abe-picture"});
      let width = 0;
      function redraw() {
        width = box.clientWidth;
        if (!width) return;
        const height = typeof options.height === "function" ? options.height(width) : options.height;
        const svg = document.createElementNS(SVG, "svg");
        const size = {viewBox: `0 0 ${width} ${height}`, width, height, role: "img"};
        Object.keys(size).forEach((key) => { svg.setAttribute(key, size[key]); });
        svg.setAttribute("aria-label", options.draw(makePen(svg, width, height)));
        box.replaceChildren(svg);
      }
      lab.pictures.push(redraw);
      new ResizeObserver(() => { if (box.clientWidth !== width && lab.ready) redraw(); }).observe(box);
      return box;
    };
  });

  Object.assign(abeLabs, {ticks});
})();
