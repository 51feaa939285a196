/* Tokens that go through layers which were never trained: points fall together, unless a switch keeps them apart.

   data: nothing. With N = norm(X), the root mean square of each token divided out, a layer makes of the tokens
   X <- A N W_V, or with the skip X <- X + A N W_V. Draw s begins with the tokens normals(1000 s, 64 * 32); layer l has
   W_Q, W_K and W_V from normals(1000 s + l, 3 * 32 * 32), divided by the root of 32. The repair subtracts 1 / T from
   all weights; state.loud multiplies the scores. */

abeLabs.define("collapse", (lab) => {
  "use strict";

  const fixed = abeLabs.fixed, D = 32, DEPTH = 24, SIZES = [8, 16, 32, 64], LOUD = [0, 0.25, 0.5, 1, 2, 4, 8];
  let states = null, curves = null, made = "";

  function near(values, value) { return values.reduce((a, b) => Math.abs(b - value) < Math.abs(a - value) ? b : a); }

  lab.begin({tokens: 32, layer: 2, skip: false, repair: false, causal: false, loud: 1, draw: 0}, (state) => {
    state.tokens = near(SIZES, state.tokens);
    state.loud = near(LOUD, state.loud);
    state.layer = Math.min(Math.max(Math.round(state.layer), 0), DEPTH);
    state.draw = Math.min(Math.max(Math.round(state.draw), 0), 1000);
  });

  // ------------------------------------------------------- the layers

  function rms(X) {
    return X.map((row) => {
      const size = Math.sqrt(abeLabs.dot(row, row) / D + 1e-6);
      return row.map((x) => x / size);
    });
  }

  function layer(X, number, state) {
    const drawn = abeLabs.normals(1000 * state.draw + number, 3 * D * D).map((x) => x / Math.sqrt(D));
    const [W_Q, W_K, W_V] = [0, 1, 2].map((i) => abeLabs.reshape(drawn.slice(i * D * D, (i + 1) * D * D), D, D));
    const N = rms(X), mask = state.causal ? X.map((_, i) => X.map((_, j) => j <= i)) : undefined;
    const V = abeLabs.matmul(N, W_V), P = state.repair ? V[0].map((_, c) => abeLabs.mean(V.map((row) => row[c]))) : null;
    const options = {mask, scale: state.loud / Math.sqrt(D)};
    const mixed = abeLabs.attention(abeLabs.matmul(N, W_Q), abeLabs.matmul(N, W_K), V, options).output;
    return mixed.map((row, i) => row.map((x, c) => {
      const made = x - (P ? P[c] : 0) + (state.skip ? X[i][c] : 0);
      return Math.abs(made) < 1e-12 ? 0 : made; // uniform weights, repaired, leave nothing but rounding
    }));
  }

  function compute(state) {
    const key = JSON.stringify(Object.assign({}, state, {layer: 0}));
    if (key === made) return; // only the layer that is looked at is another one
    made = key;
    states = [abeLabs.reshape(abeLabs.normals(1000 * state.draw, 64 * D).slice(0, state.tokens * D), state.tokens, D)];
    for (let l = 1; l <= DEPTH; l++) states.push(layer(states[l - 1], l, state));
    curves = {cosine: states.map(cosine), ratio: states.map(ratio), spread: states.map(spread)};
  }

  // ------------------------------------------------------- three numbers of the tokens

  function cosine(X) { // the mean over all pairs
    const units = X.map((row) => row.map((x) => x / (abeLabs.norm(row) || 1))), n = X.length;
    const total = abeLabs.transpose(units).map(abeLabs.sum), counted = units.filter((row) => abeLabs.norm(row) > 0).length;
    return (abeLabs.dot(total, total) - counted) / (n * (n - 1));
  }

  function ratio(X) { // s2 / s1
    const top = Math.max(...X.flat().map(Math.abs)) || 1, s = abeLabs.singularValues(X.map((row) => row.map((x) => x / top)));
    return s[0] ? s[1] / s[0] : 0;
  }

  function spread(X) { // the share that differs between tokens
    const means = abeLabs.transpose(X).map(abeLabs.mean), size = abeLabs.norm(X.flat());
    return size ? abeLabs.norm(X.flatMap((row) => row.map((x, c) => x - means[c]))) / size : 0;
  }

  // ------------------------------------------------------- pictures

  const cloud = lab.picture({height: (width) => Math.min(width, 330), draw: (pen) => {
    const l = lab.state.layer, now = rms(states[l]), before = l ? rms(states[l - 1]) : now, side = pen.height, half = 3.6;
    const left = (pen.width - side) / 2, at = (row) => [left + side * (row[0] + half) / (2 * half), side * (half - row[1]) / (2 * half)];
    pen.rect(left, 0, side, side, {color: "wash", radius: 6});
    pen.line(left, side / 2, left + side, side / 2);
    pen.line(left + side / 2, 0, left + side / 2, side);
    now.forEach((row, i) => { pen.path([at(before[i]), at(row)], {color: "faint", width: 1, opacity: 0.5}); });
    now.forEach((row, i) => {
      const [x, y] = at(row);
      if (i) pen.mark(x, y, {color: "blue", size: 5, opacity: 0.75});
    });
    const [x, y] = at(now[0]);
    pen.mark(x, y, {shape: "diamond", color: "orange", size: 6});
    pen.text(x + (x > left + side - 80 ? -10 : 10), y - 12, "first token", {anchor: x > left + side - 80 ? "end" : "start", weight: 600, halo: true});
    pen.text(left + 8, 14, `layer ${l}`, {size: 14, weight: 600});
    return `Two of the ${D} components of ${now.length} tokens as points, after ${l} layers; lines lead from where they were a layer before.`;
  }});

  const LOOKS = {cosine: {text: "mean cosine", color: "blue", shape: "circle"},
    ratio: {text: "s₂ / s₁", color: "orange", dash: "6 4", shape: "square"},
    spread: {text: "spread", color: "green", dash: "2 3", shape: "triangle"}};

  const depth = lab.picture({height: 330, draw: (pen) => {
    const l = lab.state.layer, names = Object.keys(LOOKS), room = pen.key(4, 10, names.map((name) => LOOKS[name]).map((look) =>
      ({text: look.text, color: look.color, dash: look.dash})));
    const plot = pen.axes({x: [0, DEPTH], y: [-0.1, 1.02], xTicks: [0, 6, 12, 18, 24], yTicks: [0, 0.5, 1], box: {top: room},
      xLabel: "layer"});
    pen.line(plot.x(l), plot.top, plot.x(l), plot.bottom, {color: "ink", width: 1.5});
    names.forEach((name) => {
      pen.curve(plot, curves[name].map((y, i) => [i, y]), {color: LOOKS[name].color, dash: LOOKS[name].dash, width: 2.5});
      pen.mark(plot.x(l), plot.y(curves[name][l]), {color: LOOKS[name].color, shape: LOOKS[name].shape, size: 5});
    });
    return `Over ${DEPTH} layers: ${names.map((name) => `${LOOKS[name].text} from ${fixed(curves[name][0])} to ${fixed(curves[name][DEPTH])}`).join(", ")}.`;
  }});

  lab.stage.append(
    lab.row([lab.slider({key: "layer", label: "Layer", min: 0, max: DEPTH}),
      lab.button({label: "Next layer", press: () => { lab.set({layer: Math.min(lab.state.layer + 1, DEPTH)}); }})]),
    lab.row([lab.toggle({key: "skip", label: "Skip"}), lab.toggle({key: "repair", label: "Repair"}),
      lab.toggle({key: "causal", label: "Causal mask"}),
      lab.button({label: "Draw again", press: () => { lab.set({draw: lab.state.draw + 1}); }})]),
    abeLabs.element("div", {class: "abe-row abe-halves"}, [cloud, depth]),
    lab.row([lab.slider({key: "tokens", label: "Tokens", values: SIZES}),
      lab.slider({key: "loud", label: "Scores multiplied by", values: LOUD})]));

  function parts(state) {
    const found = [state.skip ? "with a skip" : "without a skip"];
    if (state.repair) found.push("repaired");
    if (state.causal) found.push("under a causal mask");
    if (state.loud !== 1) found.push(`scores times ${state.loud}`);
    return found.join(", ");
  }

  lab.run((state) => {
    compute(state);
    const l = state.layer, c = fixed(curves.cosine[l]);
    lab.numbers({tokens: states[l], cosine: curves.cosine, ratio: curves.ratio, spread: curves.spread});
    const leak = state.repair && state.causal ? " Under the mask, the repair gives the future a negative weight: it leaks." : "";
    return `After ${l} ${l === 1 ? "layer" : "layers"} ${parts(state)}, ${state.tokens} tokens have a mean cosine of ${c}, a second ` +
      `singular value of ${fixed(curves.ratio[l])} times the first, and a spread of ${fixed(curves.spread[l])}.${leak}`;
  });
});
