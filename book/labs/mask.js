/* A mask whose places are clicked away, on a sentence of one's own, and a text that is written word by word.

   data: words (those that can be typed), vectors (one for each), sentence (the words in which it begins).
   Queries, keys and values are the vectors themselves, as in the chapter. state.flipped lists the places (row * n +
   column) that differ from the causal mask; state.step is how many words are there. */

abeLabs.define("mask", (lab) => {
  "use strict";

  const make = abeLabs.element, fixed = abeLabs.fixed, MOST = 5, d = lab.data.vectors[0].length;
  let words = [], unknown = [];

  function read(text) {
    const typed = text.toLowerCase().split(/[^a-z']+/).filter(Boolean);
    unknown = typed.filter((word) => !lab.data.words.includes(word));
    words = typed.filter((word) => lab.data.words.includes(word)).slice(0, MOST);
  }

  let text = null;
  lab.begin({text: lab.data.sentence.join(" "), flipped: [], step: lab.data.sentence.length}, (state) => {
    read(state.text);
    const n = words.length;
    if (text !== null && text !== state.text) state.step = n; // a new sentence is there as a whole
    text = state.text;
    state.flipped = state.flipped.filter((place, i, all) => Number.isInteger(place) && place >= 0 && place < n * n && all.indexOf(place) === i).sort((a, b) => a - b);
    state.step = Math.min(Math.max(Math.round(state.step), 1), n);
  });

  function allowed(i, j) { return (j <= i) !== lab.state.flipped.includes(i * words.length + j); }

  /* Weights and outputs of the first t words. */
  function compute(t) {
    const X = words.slice(0, t).map((word) => lab.data.vectors[lab.data.words.indexOf(word)]);
    const mask = X.map((_, i) => X.map((_, j) => allowed(i, j)));
    return abeLabs.attention(X, X, X, {mask});
  }

  // ------------------------------------------------------- the matrix of places

  const places = make("div", {class: "abe-places"});
  let buttons = [], built = "";

  function build() {
    if (built === words.join(" ")) return;
    built = words.join(" ");
    const table = lab.table({caption: "Weights: each row looks at the columns", rows: words, columns: words,
      cell: (i, j) => {
        const button = make("button", {type: "button", class: "abe-place"});
        button.addEventListener("click", () => { toggle(i * words.length + j); });
        return button;
      }});
    buttons = table.cells;
    places.replaceChildren(table.element);
    abeLabs.grid(buttons);
  }

  function toggle(place) {
    const flipped = lab.state.flipped;
    lab.set({flipped: flipped.includes(place) ? flipped.filter((p) => p !== place) : flipped.concat(place)});
  }

  function preset(rule) {
    const n = words.length, flipped = [];
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (rule(i, j) !== (j <= i)) flipped.push(i * n + j);
    lab.set({flipped});
  }

  function show(button, i, j, weights, t) {
    const open = allowed(i, j), there = i < t && j < t, leak = open && j > i && there;
    const weight = there ? weights[i][j] : 0;
    lab.write(button, !there ? "" : open ? fixed(weight) : "–");
    button.style.setProperty("--share", weight);
    button.classList.toggle("abe-leak", leak);
    button.setAttribute("aria-pressed", open);
    button.setAttribute("aria-label", words[i] + " looks at " + words[j] + ": " +
      (!there ? "not written yet" : open ? `weight ${fixed(weight)}` : "forbidden") + (leak ? ", a leak" : ""));
  }

  // ------------------------------------------------------- outputs, and what the cache saves

  let now = null, old = [], cost = {};

  const outputs = lab.picture({height: () => 24 + 24 * words.length, draw: (pen) => {
    const size = (pen.width - 74) / d, top = Math.max(...now.output.flat().map(Math.abs).concat(1e-9));
    const wrong = old.some((change) => change > 1e-6);
    pen.text(0, 9, wrong ? "Outputs; framed: the cache is wrong" : `Outputs, ${d} numbers each`);
    now.output.forEach((row, i) => {
      pen.text(66, 36 + 24 * i, words[i], {anchor: "end"});
      row.forEach((value, c) => {
        pen.rect(74 + c * size, 26 + 24 * i, size, 20, {color: value < 0 ? "orange" : "blue", opacity: Math.sqrt(Math.abs(value) / top)});
      });
      if (old[i] > 1e-6) pen.rect(73, 25 + 24 * i, pen.width - 74, 22, {color: "paper", opacity: 0, edge: "ink"});
    });
    return `Outputs of ${now.output.length} words as rows of colored fields, blue above 0 and orange below.`;
  }});

  const bars = lab.picture({height: 96, draw: (pen) => {
    const share = pen.width / Math.max(cost.again, 1);
    [["again", "multiplications, reading all again", "orange"], ["cached", "multiplications, with the cache", "blue"]].forEach((one, i) => {
      pen.text(0, 10 + 48 * i, `${cost[one[0]].toLocaleString("en-US")} ${one[1]}`);
      pen.rect(0, 20 + 48 * i, cost[one[0]] * share, 16, {color: one[2]});
    });
    return "Multiplications for all words so far: " + cost.again + " when all rows are computed again, " + cost.cached +
      " with the cache.";
  }});

  function count(t) {
    cost = {again: 0, cached: 0};
    for (let n = 1; n <= t; n++) {
      cost.again += 3 * n * d * d + 2 * n * n * d;
      cost.cached += 3 * d * d + 2 * n * d;
    }
  }

  // ------------------------------------------------------- the sentence

  function describe(t) {
    const leaks = [], last = now.weights[t - 1], notes = [];
    now.weights.forEach((row, i) => {
      row.forEach((_, j) => { if (j > i && allowed(i, j)) leaks.push([i, j]); });
    });
    if (unknown.length) notes.push(`There is no vector for “${unknown.join("”, “")}” here. `);
    if (t < words.length) notes.push(`${t} of ${words.length} words are written. `);
    if (leaks.length) {
      const l = leaks[leaks.length - 1], moved = old.filter((change) => change > 1e-6).length;
      return notes.join("") + "The future leaks: “" + words[l[0]] + "” gives " + fixed(now.weights[l[0]][l[1]]) + " to “" +
        words[l[1]] + "”, which comes later" + (moved ? `, and ${moved === 1 ? "an output" : `${moved} outputs`} in the cache became wrong` : "") + ".";
    }
    const others = last.slice(0, -1), best = others.indexOf(Math.max(...others));
    const to = abeLabs.sum(last) === 0 ? "looks at nothing, and its output is 0" :
      `gives ${fixed(last[t - 1])} to itself${t > 1 ? ` and, of the others, most to “${words[best]}”, ${fixed(last[best])}` : ""}`;
    return `${notes.join("")}No word looks at what comes after it. The last, “${words[t - 1]}”, ${to}.`;
  }

  const stepper = lab.stepper({key: "step", label: "Words written", min: 1, max: () => words.length,
    text: (value) => `${value} of ${words.length}`});
  const shown = lab.row([places, make("div", {class: "abe-side"}, [outputs, stepper, bars])]);
  lab.stage.append(
    lab.field({key: "text", label: `Your sentence, of up to ${MOST} words`, max: 60}),
    make("details", {class: "abe-words"}, [make("summary", {}, "The words it knows"), lab.data.words.join(", ")]),
    make("p", {}, "Press a place to forbid or allow it."),
    shown,
    lab.row([
      lab.button({label: "Causal mask", press: () => { preset((i, j) => j <= i); }}),
      lab.button({label: "No mask", press: () => { preset(() => true); }}),
      lab.button({label: "Window of 2", press: () => { preset((i, j) => j <= i && j > i - 2); }})
    ]));

  lab.run((state) => {
    const t = state.step;
    shown.hidden = !t;
    if (!t) return "Type two words or more that it knows.";
    build();
    now = compute(t);
    old = now.output.map((row, i) => { // how far an output moved since it was written, when i + 1 words were there
      const first = compute(i + 1).output[i];
      return abeLabs.norm(row.map((value, c) => value - first[c]));
    });
    count(t);
    buttons.forEach((row, i) => { row.forEach((button, j) => { show(button, i, j, now.weights, t); }); });
    lab.numbers({weights: now.weights, output: now.output, moved: old, again: cost.again, cached: cost.cached});
    return describe(t);
  });
});
