/* One query and its keys, drawn again and again: width, number of keys and scale turn the weights sharp or flat.

   data: nothing. Draw s has the query normals(2 s, 1024) and the keys normals(2 s + 1, 64 * 1024), of which the
   first dₖ components and the first T keys are taken. Scores are divided by dₖ to the power of state.power. */

abeLabs.define("temperature", (lab) => {
  "use strict";

  const fixed = abeLabs.fixed, MOST = 1024, KEYS = 64, DRAWS = 200;
  const WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024], COUNTS = [4, 8, 16, 32, 64];
  const drawn = []; // for each draw, from width to its 64 dot products
  let now = null;

  function near(values, value) { return values.reduce((a, b) => Math.abs(b - value) < Math.abs(a - value) ? b : a); }

  lab.begin({width: 64, keys: 16, power: 0, draws: 30}, (state) => {
    state.width = near(WIDTHS, state.width);
    state.keys = near(COUNTS, state.keys);
    state.power = Math.min(Math.max(state.power, 0), 1);
    state.draws = Math.min(Math.max(Math.round(state.draws), 1), DRAWS);
  });

  function draw(seed) {
    const query = abeLabs.normals(2 * seed, MOST), keys = abeLabs.normals(2 * seed + 1, KEYS * MOST), products = {};
    WIDTHS.forEach((width) => { products[width] = []; });
    for (let key = 0; key < KEYS; key++) {
      let sum = 0;
      for (let c = 0; c < MOST; c++) {
        sum += query[c] * keys[key * MOST + c];
        if (products[c + 1]) products[c + 1].push(sum);
      }
    }
    return products;
  }

  function jacobianSize(p) { // J = diag(p) - p pᵀ
    return Math.sqrt(abeLabs.sum(p.map((a, i) => abeLabs.sum(p.map((b, j) => (i === j ? a * (1 - a) : a * b) ** 2)))));
  }

  function compute(state) {
    while (drawn.length < state.draws) drawn.push(draw(drawn.length));
    const by = state.width ** state.power;
    const scores = drawn.slice(0, state.draws).map((one) => one[state.width].slice(0, state.keys).map((s) => s / by));
    const weights = scores.map((row) => abeLabs.softmax(row));
    return {scores, weights, largest: weights.map((row) => Math.max(...row)),
      neighbors: weights.map((row) => Math.exp(abeLabs.entropy(row))), jacobian: weights.map(jacobianSize)};
  }

  function last(list) { return list[list.length - 1]; }
  function spread() {
    const all = now.scores.flat(), middle = abeLabs.mean(all);
    return Math.sqrt(abeLabs.mean(all.map((s) => (s - middle) ** 2)));
  }
  function powerText(power) {
    return power === 0 ? "1" : power === 0.5 ? "√dₖ" : power === 1 ? "dₖ" : `dₖ^${power.toFixed(2)}`;
  }

  // ------------------------------------------------------- pictures

  const histogram = lab.picture({height: 220, draw: (pen) => {
    const all = now.scores.flat(), sigma = spread();
    const half = [0.5, 1.5, 5, 15, 50, 150].find((h) => h >= 3.3 * sigma) || 150, bins = new Array(30).fill(0);
    all.forEach((s) => { bins[Math.min(Math.max(Math.floor((s + half) / half * 15), 0), 29)]++; });
    const top = Math.max(...bins), plot = pen.axes({x: [-half, half], y: [0, top * 1.05], yTicks: [], box: {bottom: 206},
      xTicks: [-half, -half / 2, 0, half / 2, half], yLabel: `Scores of ${now.scores.length} draws (orange: this one)`, xLabel: "score"});
    pen.bars(plot, bins, {at: bins.map((_, i) => (i + 0.5) * half / 15 - half), width: half / 15 * 0.9, color: "blue", opacity: 0.75});
    last(now.scores).forEach((s) => { pen.line(plot.x(s), plot.bottom - 9, plot.x(s), plot.bottom + 3, {color: "orange", width: 2}); });
    pen.text(plot.right, plot.top + 6, `spread ${fixed(sigma)}`, {anchor: "end", weight: 600});
    return `Histogram of ${all.length} scores, with a spread of ${fixed(sigma)}, on an axis from ${fixed(-half, 1)} to ${fixed(half, 1)}.`;
  }});

  const bars = lab.picture({height: 220, draw: (pen) => {
    const sorted = now.weights.map((row) => row.slice().sort((a, b) => b - a)), n = sorted[0].length;
    const means = abeLabs.transpose(sorted).map(abeLabs.mean), ticks = [1, n / 2, n];
    const plot = pen.axes({x: [0.3, n + 0.7], y: [0, 1], yTicks: [0, 0.5, 1], xTicks: ticks, box: {bottom: 206},
      yLabel: "Weights of this draw, largest first", xLabel: "key, by weight"});
    pen.bars(plot, last(sorted), {at: means.map((_, i) => i + 1), color: "orange"});
    means.forEach((mean, i) => { pen.mark(plot.x(i + 1), plot.y(mean), {shape: "diamond", color: "ink", size: n > 20 ? 2.5 : 3.5}); });
    pen.mark(plot.right - 116, plot.top + 8, {shape: "diamond", color: "ink", size: 4});
    pen.text(plot.right - 106, plot.top + 8, "mean of all draws");
    return `Bars of the ${n} weights of this draw, the largest ${fixed(last(now.largest))}; diamonds for the means.`;
  }});

  function strip(name, values, top) {
    return {name, values, top, mean: abeLabs.mean(values), now: last(values)};
  }

  const strips = lab.picture({height: 204, draw: (pen) => {
    const rows = [strip("neighbors", now.neighbors, lab.state.keys), strip("largest weight", now.largest, 1),
      strip("size of the Jacobian", now.jacobian, 0.5)];
    rows.forEach((row, r) => {
      const y = 44 + 66 * r, left = 8, right = pen.width - 8, x = (v) => left + (right - left) * v / row.top;
      pen.text(0, y - 30, row.name, {weight: 600});
      pen.text(right, y - 30, `this draw ${fixed(row.now)}, mean ${fixed(row.mean)}`, {anchor: "end"});
      pen.line(left, y, right, y, {color: "edge"});
      [0, row.top].forEach((v) => { pen.text(x(v), y + 16, String(v), {anchor: v ? "end" : "start", color: "faint", size: 11}); });
      row.values.forEach((v) => { pen.mark(x(v), y, {color: "blue", size: 4, opacity: 0.45}); });
      pen.line(x(row.mean), y - 14, x(row.mean), y + 14, {color: "ink", width: 3});
      pen.mark(x(row.now), y, {shape: "diamond", color: "orange", size: 6});
    });
    return `${rows.map((row) => `${row.name} ${fixed(row.now)} in this draw, ${fixed(row.mean)} in the mean`).join("; ")}.`;
  }});

  lab.stage.append(
    lab.row([
      lab.slider({key: "width", label: "Width dₖ of the head", values: WIDTHS, text: (v) => v.toLocaleString("en-US")}),
      lab.slider({key: "keys", label: "Number T of keys", values: COUNTS}),
      lab.slider({key: "power", label: "Scores are divided by", min: 0, max: 1, step: 0.05, text: powerText})]),
    lab.row([
      lab.button({label: "Draw again", press: () => { lab.set({draws: lab.state.draws + 1}); }}),
      lab.button({label: "20 more", press: () => { lab.set({draws: lab.state.draws + 20}); }})]),
    abeLabs.element("div", {class: "abe-row abe-halves"}, [histogram, bars]), strips);

  lab.run((state) => {
    now = compute(state);
    lab.numbers({scores: last(now.scores), weights: last(now.weights), largest: now.largest, neighbors: now.neighbors, jacobian: now.jacobian});
    const how = state.power === 0 ? "not divided" : `divided by ${powerText(state.power)}`;
    return `At dₖ = ${state.width.toLocaleString("en-US")}, scores that are ${how} have a spread of ${fixed(spread())}. The largest of ` +
      `${state.keys} weights is ${fixed(last(now.largest))} in this draw and ${fixed(abeLabs.mean(now.largest))} in the mean of ` +
      `${state.draws} draws; a query attends to ${fixed(abeLabs.mean(now.neighbors), 1)} neighbors.`;
  });
});
