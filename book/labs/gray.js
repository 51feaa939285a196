/* Token Graying of one image of a digit, cut into 16 patches of 4 pixels that serve as tokens.

   data: images (one for each digit, 16 rows of 4 whole numbers, gray values times 16) and begin, the first state. The
   steps are those of gradient descent at its best rate, along the strongest and the weakest direction of the tokens. */

abeLabs.define("gray", (lab) => {
  "use strict";

  const fixed = abeLabs.fixed, EPS = 2 ** -52, LEFT = 0.01;
  let now = null;

  lab.begin(Object.assign({digit: 0, way: "svd", epsilon: 0.4}, lab.data.begin), (state) => {
    state.digit = Math.min(Math.max(Math.round(state.digit), 0), lab.data.images.length - 1);
    if (state.way !== "dct") state.way = "svd";
    state.epsilon = Math.min(Math.max(state.epsilon, 0.05), 1);
  });

  // ------------------------------------------------------- what attn_utils.graying computes

  function lift(size, largest, noise, epsilon) { return size <= noise ? 0 : largest * (size / largest) ** epsilon; }

  function svdGraying(X, epsilon) {
    const parts = abeLabs.orthogonal(abeLabs.transpose(X)), sizes = parts.rows.map(abeLabs.norm); // rows: s_k u_k; turns: v_k
    const top = Math.max(...sizes), lifted = sizes.map((size) => lift(size, top, top * X.length * EPS, epsilon));
    return X.map((row, i) => row.map((_, j) => abeLabs.sum(lifted.map((s, k) => s && s / sizes[k] * parts.rows[k][i] * parts.turns[k][j]))));
  }

  /* The orthonormal cosine transform of type II: coefficients = T_n X T_d^T. */
  function cosines(n) {
    return Array.from({length: n}, (_, k) => Array.from({length: n}, (__, i) => Math.sqrt((k ? 2 : 1) / n) * Math.cos(Math.PI * k * (2 * i + 1) / (2 * n))));
  }

  function dctGraying(X, epsilon) {
    const rows = cosines(X.length), columns = cosines(X[0].length);
    const C = abeLabs.matmul(abeLabs.matmul(rows, X), abeLabs.transpose(columns));
    const top = Math.max(...C.flat().map(Math.abs));
    const lifted = C.map((row) => row.map((c) => Math.sign(c) * lift(Math.abs(c), top, top * X.length * EPS, epsilon)));
    return abeLabs.matmul(abeLabs.matmul(abeLabs.transpose(rows), lifted), columns);
  }

  function steps(kappa) { // each one leaves (kappa^2 - 1) / (kappa^2 + 1) of the error
    const left = (kappa ** 2 - 1) / (kappa ** 2 + 1);
    return left < LEFT ? 1 : Math.ceil(Math.log(LEFT) / Math.log(left) - 1e-9);
  }

  function look(X) {
    const values = abeLabs.singularValues(X), kappa = values[0] / values[values.length - 1];
    return {X, values, kappa, steps: steps(kappa)};
  }

  // ------------------------------------------------------- pictures

  const many = (count) => `${count.toLocaleString("en-US")} step${count === 1 ? "" : "s"}`;

  function image(pen, X, x, y, side) { // token 4 i + j is the patch in row i, column j
    const top = Math.max(...X.flat().map(Math.abs)), s = side / 8;
    X.forEach((row, t) => {
      row.forEach((value, k) => {
        pen.rect(x + s * (2 * (t % 4) + k % 2), y + s * (2 * Math.floor(t / 4) + Math.floor(k / 2)), s + 0.3, s + 0.3,
          {color: value < 0 ? "purple" : "ink", opacity: Math.abs(value) / top});
      });
    });
    [0, 1, 2, 3, 4].forEach((k) => {
      pen.line(x, y + k * side / 4, x + side, y + k * side / 4);
      pen.line(x + k * side / 4, y, x + k * side / 4, y + side);
    });
  }

  function bowl(pen, one, x, y, side, color) {
    const id = `lab-gray-${color}`, at = (w) => [x + side / 2 * (1 + w[0] / 1.2), y + side / 2 * (1 - w[1] / 1.2)];
    pen.add("clipPath", {id}).append(pen.add("rect", {x, y, width: side, height: side}));
    pen.rect(x, y, side, side, {color: "wash"});
    [0.15, 0.5, 1, 1.4].forEach((level) => { // the weak direction lies across: a narrow valley where kappa is large
      const ring = Array.from({length: 73}, (_, k) => at([level * one.kappa * Math.cos(k * Math.PI / 36), level * Math.sin(k * Math.PI / 36)]));
      pen.path(ring, {color: "gray", width: 1}).setAttribute("clip-path", `url(#${id})`);
    });
    const left = (one.kappa ** 2 - 1) / (one.kappa ** 2 + 1);
    const path = Array.from({length: Math.min(one.steps, 60) + 1}, (_, t) => at([left ** t, (-left) ** t]));
    pen.path(path, {color, width: 1.5});
    path.forEach((p) => { pen.mark(p[0], p[1], {color, size: 2.5, edge: color}); });
    const goal = at([0, 0]);
    pen.mark(goal[0], goal[1], {color: "green", shape: "triangle", size: 6});
  }

  const side = (width) => Math.min((width - 16) / 2, 220);
  const pictures = lab.picture({height: (width) => 2 * side(width) + 84, draw: (pen) => {
    const s = side(pen.width);
    [[now.before, "before", "orange"], [now.after, "grayed", "blue"]].forEach((one, i) => {
      const x = i * (s + 16);
      pen.text(x, 8, `Tokens, ${one[1]}`);
      image(pen, one[0].X, x, 20, s);
      pen.text(x, s + 38, `κ = ${fixed(one[0].kappa, 1)}`, {weight: 700});
      pen.text(x, s + 56, many(one[0].steps));
      bowl(pen, one[0], x, s + 68, s, one[2]);
    });
    return "The image before and after graying, and gradient descent in the valleys of both.";
  }});

  const spectrum = lab.picture({height: 220, draw: (pen) => {
    const high = Math.max(now.before.values[0], now.after.values[0]);
    const used = pen.key(0, 8, [{text: "before", color: "orange", shape: "circle"}, {text: "grayed", color: "blue", shape: "square"}]);
    const plot = pen.axes({box: {top: used}, x: [0.5, 4.5], y: [0, 1.08 * high], xTicks: [1, 2, 3, 4], xText: (k) => `s${"₀₁₂₃₄"[k]}`, yLabel: "Singular values"});
    now.before.values.forEach((value, k) => {
      pen.line(plot.x(k + 1), plot.y(value), plot.x(k + 1), plot.y(now.after.values[k]), {color: "gray", width: 2, dash: "3 3"});
      pen.mark(plot.x(k + 1), plot.y(value), {color: "orange", size: 6, hollow: true});
      pen.mark(plot.x(k + 1), plot.y(now.after.values[k]), {color: "blue", size: 5, shape: "square"});
    });
    const list = (values) => values.map((value) => fixed(value)).join(", ");
    return `Singular values: ${list(now.before.values)} before, ${list(now.after.values)} after.`;
  }});

  lab.stage.append(
    lab.row([
      abeLabs.element("div", {class: "abe-side"}, [
        lab.slider({key: "epsilon", label: "ε, the exponent: 1 changes nothing", min: 0.05, max: 1, step: 0.05, text: (value) => fixed(value)}),
        lab.choice({key: "way", label: "What is raised to the power of ε", options: [{value: "svd", label: "singular values"}, {value: "dct", label: "cosines (DCT)"}]}),
        lab.slider({key: "digit", label: "Which digit", min: 0, max: lab.data.images.length - 1}), spectrum]),
      abeLabs.element("div", {class: "abe-side"}, [pictures,
        abeLabs.element("p", {class: "abe-hint"}, "Purple pixels are below 0. A dot is a step of gradient descent, the triangle its goal.")])]));

  lab.run((state) => {
    const X = lab.data.images[state.digit].map((row) => row.map((value) => value / 16));
    now = {before: look(X), after: look((state.way === "svd" ? svdGraying : dctGraying)(X, state.epsilon))};
    lab.numbers({grayed: now.after.X, before: now.before.values, after: now.after.values, kappa: [now.before.kappa, now.after.kappa],
      steps: [now.before.steps, now.after.steps]});
    const power = `${fixed(now.before.kappa, 1)} to the power of ${fixed(state.epsilon)}`;
    return `At ε = ${fixed(state.epsilon)}, the ${state.way.toUpperCase()} takes κ of these 16 tokens from ${fixed(now.before.kappa, 1)} to ${fixed(now.after.kappa, 1)}` +
      (state.way === "svd" ? `, which is ${power}` : `; ${power} would be ${fixed(now.before.kappa ** state.epsilon, 1)}`) +
      `. Gradient descent gets rid of 99 % of the error in ${many(now.after.steps)} instead of ${now.before.steps.toLocaleString("en-US")}.`;
  });
});
