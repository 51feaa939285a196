/* Ask a sentence: type one, press a word, and see what attention between word vectors makes of it: raw, or after
   random projections, which can be drawn again and again. words.js has the vectors. */

abeLabs.define("ask", (lab) => {
  "use strict";

  const {vectors, load, whole, tokens, near} = abeLabs.words, make = abeLabs.element, fixed = abeLabs.fixed, MOST = 16, DRAWS = 400, D = 50;
  const BOUND = {raw: 0.01, random: 0.02}; // how far a rounded weight may be off; tests/test_page_vectors.py measures it
  const EXAMPLES = [ // the first only in chapter 1, which asks about it
    {name: "The animal", text: "the animal did not cross the street because it was too tired", word: 8, other: 1},
    {name: "Tea", text: "we drink green tea while they drink black coffee", word: 3, other: 8},
    {name: "Two banks", text: "she sat on the bank of the river and waited for the bank to open", word: 4, other: 12},
    {name: "The doctor", text: "the doctor asked the nurse to help because she was busy", word: 8, other: 1}
  ];

  // ---------- what is computed

  let words = [], unknown = [], cut = 0, asks = 0, other = 0, weights = [], ranks = [];
  const drawn = []; // W_Q and W_K of each draw: page_normals(seed, 2, 50, 50) / sqrt(50)

  function draw(seed) {
    drawn[seed] = drawn[seed] || Float64Array.from(abeLabs.normals(seed, 2 * D * D), (x) => x / Math.sqrt(D));
    return drawn[seed];
  }

  function project(x, W, from) {
    const found = new Array(D).fill(0);
    for (let i = 0; i < D; i++) for (let j = 0; j < D; j++) found[j] += x[i] * W[from + i * D + j];
    return found;
  }

  function rank(row, place) { return 1 + row.filter((w) => w > row[place]).length; }

  function compute(state) {
    const X = words.map((word) => vectors.get(word)), scale = (state.scale ? 1 / Math.sqrt(D) : 1) / state.temperature;
    if (state.source === "raw") {
      weights = abeLabs.attention(X, X, X, {scale}).weights;
      ranks = [];
      return;
    }
    const W = draw(state.draws), Q = X.map((x) => project(x, W, 0)), K = X.map((x) => project(x, W, D * D));
    weights = abeLabs.attention(Q, K, X, {scale}).weights;
    ranks = [];
    for (let seed = 1; seed <= state.draws; seed++) { // one row only, for speed
      const M = draw(seed), q = project(X[asks], M, 0), asked = new Array(D).fill(0); // q W_K^T
      for (let i = 0; i < D; i++) for (let j = 0; j < D; j++) asked[i] += q[j] * M[D * D + i * D + j];
      ranks.push(rank(X.map((x) => abeLabs.dot(x, asked)), other));
    }
  }

  // ---------- the sentence and its arcs

  const SVG = "http://www.w3.org/2000/svg", arcs = document.createElementNS(SVG, "svg");
  arcs.setAttribute("aria-hidden", "true"); // the bars say the same
  const line = make("div", {class: "abe-asked", role: "group", "aria-label": "Press the word that asks"}, arcs);
  let buttons = [], written = "";

  function writeWords() {
    if (words.join(" ") === written) return;
    written = words.join(" ");
    buttons.forEach((button) => { button.remove(); });
    buttons = words.map((word, i) => {
      const button = make("button", {type: "button"}, word);
      button.addEventListener("click", () => { lab.set({word: i}); });
      return button;
    });
    line.append(...buttons);
    abeLabs.grid([buttons]);
  }

  lab.pictures.push(() => {
    arcs.replaceChildren();
    const box = line.getBoundingClientRect(), from = buttons[asks]?.getBoundingClientRect();
    if (!from || !weights.length) return;
    buttons.forEach((button, j) => {
      button.setAttribute("aria-pressed", j === asks);
      button.classList.toggle("abe-followed", j === other);
      if (j === asks) return;
      const to = button.getBoundingClientRect(), same = Math.abs(to.top - from.top) < 5;
      const x1 = from.left + from.width / 2 - box.left, x2 = to.left + to.width / 2 - box.left;
      const y1 = from.top - box.top, y2 = to.top - box.top, rise = same ? Math.min(14 + Math.abs(x1 - x2) / 5, y1 < 90 ? 74 : 40) : 32;
      const path = document.createElementNS(SVG, "path"), weight = weights[asks][j];
      path.setAttribute("d", `M${x1} ${y1}C${x1} ${y1 - rise * 4 / 3} ${x2} ${y2 - rise * 4 / 3} ${x2} ${y2}`);
      path.setAttribute("style", `stroke:var(--abe-${j === other ? "orange" : "blue"});stroke-width:${1 + 40 * weight};opacity:${Math.min(1, 0.25 + 2 * weight)}`);
      arcs.append(path);
    });
  });
  new ResizeObserver(() => { if (lab.ready) lab.pictures[0](); }).observe(line);

  // ---------- pictures

  function name(j) { return words.indexOf(words[j]) === words.lastIndexOf(words[j]) ? words[j] : `${words[j]} (word ${j + 1})`; }

  const bars = lab.picture({height: () => 24 * words.length + 24, draw: (pen) => {
    const row = weights[asks], left = 9 + 7.2 * Math.max(...words.map((word) => word.length));
    const share = (pen.width - left - 92) / Math.max(...row);
    pen.text(0, 8, `What “${words[asks]}” gives, and the rank`, {weight: 600});
    row.forEach((weight, j) => {
      const y = 36 + 24 * j, followed = j === other, color = followed ? "orange" : j === asks ? "gray" : "blue";
      pen.text(left - 6, y, words[j], {anchor: "end", weight: followed ? 700 : 400});
      pen.rect(left, y - 8, weight * share, 16, {color});
      pen.text(left + weight * share + 6, y, `${fixed(weight)} · ${ordinal(rank(row, j))}`, {weight: followed ? 700 : 400});
    });
    return `Bars: ${row.map((weight, j) => `${words[j]} ${fixed(weight)}`).join(", ")}.`;
  }});

  const matrix = lab.picture({height: (width) => 96 + cell(width) * words.length, draw: (pen) => {
    const size = cell(pen.width), left = 12 + 7 * Math.max(0, ...words.map((word) => word.length));
    pen.text(0, 8, "All weights: a row for each word that asks", {weight: 600});
    pen.heat(weights.map((row) => row.map((w) => w / Math.max(...weights.flat()))), {x: left, y: 92, size, rows: words, columns: words});
    pen.rect(left - 1, 91 + asks * size, size * words.length + 1, size + 1, {opacity: 0, edge: "orange"}).style.strokeWidth = 2;
    return `The weights of all ${words.length} words as a square of fields; the row of “${words[asks]}” is framed.`;
  }});
  function cell(width) {
    const left = 12 + 7 * Math.max(0, ...words.map((word) => word.length));
    return Math.min(26, (width - left - 24) / Math.max(words.length, 1));
  }

  const histogram = lab.picture({height: 190, draw: (pen) => {
    const n = words.length, counts = words.map((_, r) => ranks.filter((one) => one === r + 1).length);
    const most = Math.max(4, ...counts), word = words[other];
    const plot = pen.axes({x: [0.4, n + 0.6], y: [0, most], xTicks: words.map((_, r) => r + 1), yLabel: `Draws in which “${word}” has this rank`, xLabel: "rank", yTicks: abeLabs.ticks(0, most, 4).filter(Number.isInteger)});
    pen.bars(plot, counts, {at: counts.map((_, r) => r + 1), color: counts.map((_, r) => r + 1 === ranks[ranks.length - 1] ? "orange" : "blue")});
    return `How often each rank came up: ${counts.map((c, r) => `${ordinal(r + 1)} ${c}`).join(", ")}.`;
  }});

  // ---------- words: what is missing, and what is seen

  function ordinal(n) { return n + (n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th"); }
  function times(n) { return n === 1 ? "once" : n === 2 ? "twice" : n ? `${n} times` : "never"; }

  const offers = make("div", {class: "abe-offers"});
  function offer() {
    offers.replaceChildren(...(whole() ? unknown : []).slice(0, 3).map((word) => {
      const found = near(word);
      return make("p", {}, [`No vector for “${word}”. `, ...(found.length ? ["Perhaps: "] : []),
        ...found.map((known) => lab.button({label: known, press: () => {
          lab.set({text: tokens(lab.state.text).map((token) => token === word ? known : token).join(" ")});
        }}))]);
    }));
  }

  function describe(state) {
    const missing = `“${unknown.join("”, “")}”`;
    const notes = !unknown.length ? "" : whole() ? `There is no vector for ${missing} here. ` : `Looking up ${missing}. `;
    if (!words.length) return `${notes}Type a word that it knows.`;
    const row = weights[asks], best = row.indexOf(Math.max(...row)), a = name(asks), b = name(other);
    const how = state.source === "raw" ? "With raw vectors" : `In draw ${state.draws}`;
    let text = `${how}, “${a}” gives most to ${best === asks ? "itself" : `“${name(best)}”`}, ${fixed(row[best])}`;
    if (other !== best) text += `; ${other === asks ? "itself" : `“${b}”`} gets ${fixed(row[other])} and is ${ordinal(rank(row, other))} of ${words.length}`;
    if (state.source === "random" && words.length > 1) {
      text += `. Over ${state.draws === 1 ? "one draw" : `${state.draws} draws`}, “${b}” is first ${times(ranks.filter((r) => r === 1).length)} and last ${times(ranks.filter((r) => r === words.length).length)}`;
    }
    return `${notes}${text}.${cut ? ` The first ${MOST} words count.` : ""}`;
  }

  const follow = make("select", {id: "lab-ask-follow"});
  follow.addEventListener("change", () => { lab.set({other: follow.selectedIndex}); });
  const random = make("div", {}, [make("div", {class: "abe-acts"}, [
    lab.button({label: "Draw again", press: () => { lab.set({draws: Math.min(lab.state.draws + 1, DRAWS)}); }}),
    lab.button({label: "Draw 50 more", press: () => { lab.set({draws: Math.min(lab.state.draws + 50, DRAWS)}); }}),
    lab.button({label: "Begin anew", press: () => { lab.set({draws: 1}); }})]), histogram]);

  function prepare(state) {
    const all = tokens(state.text), known = all.filter((token) => vectors.has(token));
    unknown = [...new Set(all.filter((token) => !vectors.has(token)))];
    if (unknown.length && !whole()) load("rest").then(() => { lab.set({}); }, (error) => { console.error(error.message); });
    cut = Math.max(0, known.length - MOST);
    words = known.slice(0, MOST);
    [asks, other] = [state.word, state.other].map((place) => Math.min(place, Math.max(words.length - 1, 0)));
  }

  lab.begin(Object.assign({text: EXAMPLES[0].text, word: 8, other: 1, source: "raw", draws: 1, scale: true, temperature: 1}, lab.data.begin),
    (state) => {
      ["word", "other"].forEach((key) => { state[key] = Math.max(0, Math.round(state[key])); });
      state.draws = Math.min(Math.max(1, Math.round(state.draws)), DRAWS);
      state.temperature = Math.min(Math.max(state.temperature, 0.25), 4);
      if (state.source !== "random") state.source = "raw";
    });

  const seen = lab.row([make("div", {class: "abe-side"}, bars), make("div", {class: "abe-side"}, matrix)]);
  load("first").then(() => {
    lab.stage.append(
      lab.field({key: "text", label: `Your sentence, of up to ${MOST} words`, max: 140}), offers,
      make("div", {class: "abe-acts", role: "group", "aria-label": "Examples"}, EXAMPLES.filter((one, i) => i || one.text === lab.defaults.text).map((one) => lab.button({label: one.name, press: () => { lab.set({text: one.text, word: one.word, other: one.other}); }}))),
      make("p", {class: "abe-hint"}, "Press a word: where does it look?"), line,
      lab.row([make("div", {class: "abe-side"}, lab.choice({key: "source", label: "Queries and keys", options: [{value: "raw", label: "Raw vectors"}, {value: "random", label: "Random"}]})),
        make("div", {class: "abe-select"}, [make("label", {for: "lab-ask-follow"}, "Follow the word"), follow])]),
      random,
      seen,
      lab.row([lab.toggle({key: "scale", label: "Divide by √50"}), lab.slider({key: "temperature", label: "Temperature", values: [0.25, 0.5, 1, 2, 4]})]),
      make("p", {class: "abe-hint"}, `The page rounds the vectors to 8 bits. In thousands of sentences, no raw weight moved by ${BOUND.raw}, and none under random matrices by ${BOUND.random} (scaled, at temperature 1).`));
    lab.run((state) => {
      prepare(state);
      writeWords();
      offer();
      follow.replaceChildren(...words.map((_, j) => make("option", {}, name(j))));
      follow.selectedIndex = other;
      seen.hidden = !words.length;
      random.hidden = state.source === "raw" || seen.hidden;
      if (words.length) compute(state);
      else { weights = []; ranks = []; }
      lab.numbers({words, weights, ranks});
      return describe(state);
    });
  }).catch((error) => {
    lab.stage.hidden = true;
    lab.figure.classList.remove("abe-live");
    console.error(`lab-ask: the still picture stays. ${error.message}`);
  });
});
