/* Attention of three tokens in two heads: every number of X, W_Q, W_K and W_V can be changed.

   data: words (3), X (3 rows of 2 features), W_Q, W_K, W_V (for each head a matrix of 2 rows). The weight that is
   pointed at is explained below; it is no part of the state. */

abeLabs.define("three_tokens", (lab) => {
  "use strict";

  const make = abeLabs.element, data = lab.data, words = data.words, d_k = data.W_K[0][0].length;
  const NAMES = ["W_Q", "W_K", "W_V"], SIGNS = {X: "X, the words", W_Q: "W_Q: asks", W_K: "W_K: is found by", W_V: "W_V: passes on"};
  const features = data.X[0].map((_, c) => `feature ${c + 1}`);
  let seen = [words.length - 1, words.length - 1], before = null, now = null;

  function sizes(key) { // of the matrix that a key of the state holds
    return key === "X" ? [data.X.length, data.X[0].length] : [data.X[0].length, data[key.slice(0, 3)][0][0].length];
  }

  const defaults = {head: 1, X: data.X.flat()};
  [0, 1].forEach((h) => { NAMES.forEach((name) => { defaults[`${name}_${h + 1}`] = data[name][h].flat(); }); });
  const limits = {X: 3, W_Q: 5, W_K: 5, W_V: 20};

  lab.begin(defaults, (state) => {
    if (state.head !== 2) state.head = 1;
    Object.keys(defaults).filter((key) => key !== "head").forEach((key) => {
      const most = limits[key.slice(0, 3)];
      state[key] = defaults[key].map((value, i) => {
        const found = state[key][i] === undefined ? value : state[key][i];
        return Math.min(Math.max(found, -most), most);
      });
    });
  });

  function matrix(key) { return abeLabs.reshape(lab.state[key], sizes(key)[0], sizes(key)[1]); }

  function compute() {
    const X = matrix("X"), [Q, K, V] = NAMES.map((name) => abeLabs.matmul(X, matrix(`${name}_${lab.state.head}`)));
    return Object.assign(abeLabs.attention(Q, K, V), {Q, K, V});
  }

  // ------------------------------------------------------- texts

  function short(value) { return abeLabs.fixed(value, 2).replace(/\.?0+$/, ""); }
  function vector(values) { return `(${values.map(short).join(", ")})`; }
  function fixedVector(values) { return `(${values.map((value) => abeLabs.fixed(value)).join(", ")})`; }

  function describe(key) {
    const [i] = seen, gives = now.weights[i].map((w, j) => `${abeLabs.fixed(w)} to ${i === j ? "itself" : `“${words[j]}”`}`);
    const row = `In head ${lab.state.head}, “${words[i]}” gives ${gives.slice(0, -1).join(", ")} and ${gives[gives.length - 1]}, ` +
      `and its output is ${fixedVector(now.output[i])}.`;
    if (!before || !key || key === "head") return row;
    const weights = count(before.weights.flat(), now.weights.flat());
    const outputs = now.output.filter((values, r) => count(values, before.output[r])).length;
    return `Your change moved ${weights} of ${words.length * words.length} weights and ${outputs} of ${words.length} outputs. ${row}`;
  }

  function count(a, b) { return a.filter((value, i) => Math.abs(value - b[i]) > 1e-9).length; }

  // ------------------------------------------------------- what can be changed

  function cells(key, head) {
    const name = key.slice(0, 3), [rows, columns] = sizes(key), isX = key === "X";
    return lab.cells({
      key, caption: SIGNS[name], min: -limits[name], max: limits[name],
      rows: isX ? words : Array.from({length: rows}, (_, r) => String(r + 1)),
      columns: Array.from({length: columns}, (_, c) => String(c + 1)),
      label: (i, j) => isX ? `${words[i]}, ${features[j]}` : `${name} of head ${head}, row ${i + 1}, column ${j + 1}`
    });
  }

  const heads = [1, 2].map((head) => NAMES.map((name) => {
    const box = cells(`${name}_${head}`, head);
    box.classList.add(`abe-${name}`);
    return box;
  }));

  // ------------------------------------------------------- what follows

  function numbers(caption, columns) {
    return lab.table({caption, rows: words, columns, cell: () => make("span", {class: "abe-result"})});
  }

  const scores = numbers("Scores", words), outputs = numbers("Outputs", features.map((_, c) => String(c + 1)));
  const weights = lab.table({caption: "Weights: point at one", rows: words, columns: words, cell: (i, j) => {
    const button = make("button", {type: "button", class: "abe-place"});
    const point = () => {
      if (seen[0] === i && seen[1] === j) return;
      seen = [i, j];
      lab.refresh();
    };
    ["mouseenter", "focus", "click"].forEach((name) => { button.addEventListener(name, point); });
    return button;
  }});
  abeLabs.grid(weights.cells);

  function show() {
    words.forEach((_, i) => {
      words.forEach((_, j) => {
        const weight = now.weights[i][j], button = weights.cells[i][j], on = i === seen[0] && j === seen[1];
        lab.write(scores.cells[i][j], short(now.scores[i][j]));
        lab.write(button, abeLabs.fixed(weight));
        button.style.setProperty("--share", weight);
        button.setAttribute("aria-label", `${words[i]} gives ${abeLabs.fixed(weight)} to ${words[j]}; the score is ${short(now.scores[i][j])}`);
        button.classList.toggle("abe-seen", on);
        scores.cells[i][j].classList.toggle("abe-seen", on);
      });
      now.output[i].forEach((value, c) => { lab.write(outputs.cells[i][c], abeLabs.fixed(value)); });
    });
  }

  /* One weight, from its two vectors on. */
  const explained = lab.picture({height: (width) => 150 + (width < 560 ? 122 : 0), draw: (pen) => {
    const [i, j] = seen, wide = pen.width >= 560, q = now.Q[i], k = now.K[j], step = Math.min(56, (pen.width - 112) / d_k);
    const products = q.map((value, c) => value * k[c]), rows = [
      [`${words[i]} asks`, q, "blue"], [`${words[j]} is found by`, k, "orange"], ["product", products, "ink"]];
    rows.forEach(([name, values, color], r) => {
      pen.text(0, 14 + 26 * r, name, {color, weight: 600});
      values.forEach((value, c) => { pen.text(118 + step * (c + 0.5), 14 + 26 * r, short(value), {anchor: "middle", size: 13}); });
    });
    pen.line(118, 54, 118 + step * d_k, 54, {color: "edge"});
    const sum = abeLabs.sum(products), row = now.scores[i].map((s) => `e^${short(s)}`);
    pen.text(0, 98, `score = ${short(sum)} / √${d_k} = ${short(now.scores[i][j])}`, {size: 13});
    pen.text(0, 124, `weight = ${row[j]} / (${row.join(" + ")}) = ${abeLabs.fixed(now.weights[i][j])}`, {size: 13});
    const x = wide ? Math.max(330, pen.width * 0.52) : 0, y = wide ? 14 : 160;
    pen.text(x, y, `output of ${words[i]}: weights times values`, {color: "green", weight: 600});
    words.forEach((word, t) => {
      pen.text(x, y + 26 * (t + 1) - (wide ? 0 : 4), `${t ? "+ " : "   "}${abeLabs.fixed(now.weights[i][t])} × ${vector(now.V[t])}  from ${word}`, {size: 13});
    });
    if (wide) pen.text(x, y + 104, `= ${fixedVector(now.output[i])}`, {size: 13});
    return `${words[i]} asks ${vector(q)}, ${words[j]} is found by ${vector(k)}: the products ${vector(products)} sum to ${short(sum)}. ` +
      `Divided by the root of ${d_k}, that is the score ${short(now.scores[i][j])}, and the weight is ${abeLabs.fixed(now.weights[i][j])}.`;
  }});

  lab.stage.append(
    lab.choice({key: "head", label: "Head", options: [{value: 1, label: "Head 1"}, {value: 2, label: "Head 2"}]}),
    lab.row([cells("X"), ...heads.flat()]), make("p", {class: "abe-hint"}, "Write a number, drag it sideways, or use the arrow keys."),
    make("div", {class: "abe-row abe-follows"}, [scores.element, make("div", {}, weights.element), outputs.element]), explained);

  lab.run((state, key) => {
    heads.forEach((boxes, h) => { boxes.forEach((box) => { box.hidden = h + 1 !== state.head; }); });
    before = now;
    now = compute();
    show();
    lab.numbers({scores: now.scores, weights: now.weights, output: now.output});
    return describe(key);
  });
});
