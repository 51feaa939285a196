/* Every head of a trained model on one sentence: where a word looks, the whole pattern, and what the head is like.

   data: model ("minilm" or "smollm"), and begin, the state in which it begins. The weights come in 8 bits out of
   heads.npz, a script for each sentence, or from a file of the reader's own, which diagnose() wrote. */

abeLabs.define("heads", (lab) => window.abeLoad("heads_data").then(() => window.abeLoad("heads/contents")).then(() => {
  "use strict";

  const make = abeLabs.element, fixed = abeLabs.fixed, heads = window.abeHeads, name = heads.name, range = heads.range;
  const model = heads.known.contents[lab.data.model], ready = {};
  let file = null, alike = null, problem = "";
  let view = null; // what is on the stage: set by the last follow() that had its weights

  function load(number) {
    const data = `${lab.data.model}-${number}`;
    return window.abeLoad(`heads/${data}`).then(() => {
      const list = heads.bytes(data), n = model.sentences[number - 1].tokens.length;
      ready[number] = Object.assign({}, model, {
        tokens: model.sentences[number - 1].tokens,
        matrices: Array.from({length: model.layers * model.heads}, (_, h) => heads.unpack(list, h, n, model.causal))
      });
    });
  }

  function headName(h) { return `${Math.floor(h / view.source.heads) + 1}.${h % view.source.heads + 1}`; }

  /* The same in the other sentences, from the stored mean over all of them. */
  function elsewhere(h, other, here) {
    if (!alike || file) return null;
    const n = model.layers * model.heads, a = Math.min(h, other), b = Math.max(h, other), many = model.sentences.length;
    return (many * alike[a * n - a * (a + 1) / 2 + b - a - 1] / 255 - here) / (many - 1);
  }

  // ------------------------------------------------------- pictures

  const arcs = lab.picture({height: () => view.n * view.high + 4, draw: (pen) => {
    const row = view.row, at = view.state.word - 1, top = Math.max(...row), y = (i) => (i + 0.5) * view.high + 2;
    const bar = Math.min(190, pen.width * 0.56), room = pen.width - bar - 42;
    pen.rect(76, y(at) - view.high / 2, pen.width - 76, view.high, {color: "lit"});
    row.forEach((weight, j) => {
      if (weight < 0.02) return;
      const bow = 12 + Math.min(62, Math.abs(j - at) * 9);
      pen.path(`M80 ${y(at)}C${[80 - bow, y(at) + (j === at ? -14 : 0), 80 - bow, y(j) + (j === at ? 14 : 0), 80, y(j)].join(" ")}`,
        {color: "blue", width: 1 + 9 * weight, opacity: 0.35 + 0.65 * weight});
    });
    view.source.tokens.forEach((_, j) => {
      pen.text(84, y(j), name(view.source, j).slice(1, -1).slice(0, 12), {size: view.high < 20 ? 11 : 14, weight: j === at ? 700 : 400});
      pen.rect(bar, y(j) - view.high / 2 + 3, Math.max(row[j] * room, 1), view.high - 6, {color: row[j] === top ? "blue" : "sky"});
      if (row[j] >= 0.005) pen.text(bar + row[j] * room + 5, y(j), fixed(row[j]), {color: "faint"});
    });
    return `Where ${name(view.source, at)} looks: ${range(0, view.n).filter((j) => row[j] >= 0.02)
      .map((j) => `${name(view.source, j)} ${fixed(row[j])}`).join(", ")}.`;
  }});

  function grid(width) { return heads.grid(view.source, width); }

  const map = lab.picture({height: (width) => { const g = grid(width); return g.top + g.rows * g.high + 4; }, draw: (pen) => {
    const g = grid(pen.width), others = view.map.filter((_, h) => view.kind.key !== "alike" || h !== view.h);
    const top = Math.max(...others), every = Math.ceil(24 / g.w);
    pen.text(0, 8, `Brightest: ${fixed(top)}${g.across ? "; layers across, heads down" : "; heads across, layers down"}`, {color: "faint"});
    range(0, g.columns).forEach((c) => {
      if (c % every === 0) pen.text(g.left + (c + 0.5) * g.w, 26, c + 1, {anchor: "middle", color: "faint", size: 11});
    });
    range(0, g.rows).forEach((r) => {
      pen.text(g.left - 6, g.top + (r + 0.5) * g.high, r + 1, {anchor: "end", color: "faint", size: 11});
      range(0, g.columns).forEach((c) => {
        const box = [g.left + c * g.w, g.top + r * g.high, g.w - 1, g.high - 1];
        pen.rect(...box, {color: "wash"});
        pen.rect(...box, {color: "blue", opacity: Math.min(view.map[g.head(c, r)] / top, 1) || 0});
      });
    });
    range(0, g.columns * g.rows).forEach((k) => {
      const c = k % g.columns, r = Math.floor(k / g.columns), h = g.head(c, r), mine = h === view.h;
      if (!mine && !(view.state.show === "alike" && view.nearest.includes(h))) return;
      const box = pen.rect(g.left + c * g.w - 1, g.top + r * g.high - 1, g.w + 1, g.high + 1, {opacity: 0, edge: mine ? "orange" : "ink", radius: 2});
      box.style.strokeWidth = mine ? 3 : 1.5;
    });
    return `A map of all ${view.map.length} heads: ${view.kind.label}. The largest value is ${fixed(top)}, in head ${headName(view.map.indexOf(top))}.`;
  }});

  const pattern = lab.picture({height: (width) => Math.min(width, 320) + 24, draw: (pen) => {
    const n = view.n, size = (Math.min(pen.width, 320) - 2) / n;
    pen.text(0, 8, "Rows look at columns");
    pen.heat(view.pattern, {x: 0, y: 22, size, gap: (i, j) => view.source.causal && j > i});
    pen.rect(-1, 21 + (view.state.word - 1) * size, n * size + 1, size + 1, {opacity: 0, edge: "orange"}).style.strokeWidth = 2;
    return `The pattern of the head: ${n} rows, ${n} columns, and the row of ${name(view.source, view.state.word - 1)} framed.`;
  }});

  function place(box, act) { // a press on a picture, in pixels of it
    box.addEventListener("click", (event) => {
      const at = box.getBoundingClientRect();
      if (view.n > 1 || box === map) act(event.clientX - at.left, event.clientY - at.top, at.width);
    });
  }
  function clamp(value, most) { return Math.min(Math.max(Math.round(value), 1), most); }
  function pick(h) { lab.set({layer: Math.floor(h / view.source.heads) + 1, head: h % view.source.heads + 1}); }

  place(arcs, (_, y) => { lab.set({word: clamp(Math.ceil((y - 2) / view.high), view.n)}); });
  place(pattern, (_, y, width) => { lab.set({word: clamp(Math.ceil((y - 22) * view.n / Math.min(width, 320)), view.n)}); });
  function onMap(x, y, width) {
    const g = grid(width), c = clamp(Math.ceil((x - g.left) / g.w), g.columns), r = clamp(Math.ceil((y - g.top) / g.high), g.rows);
    if (g.head(c - 1, r - 1) !== view.h) pick(g.head(c - 1, r - 1));
  }
  place(map, onMap);
  abeLabs.drag(map, {move: (_, __, event) => {
    const at = map.getBoundingClientRect();
    onMap(event.clientX - at.left, event.clientY - at.top, at.width);
  }});
  [arcs, map, pattern].forEach((box) => { box.style.cursor = "pointer"; });

  // ------------------------------------------------------- scores, as buttons that color the map

  const scores = make("div", {class: "abe-scores"});

  function showScores() {
    const list = view.kinds, shape = list.map((kind) => kind.key).join();
    if (scores.dataset.shape !== shape) {
      scores.dataset.shape = shape;
      scores.replaceChildren(...list.map((kind) => {
        const button = make("button", {type: "button"}, [make("span"), make("i"), make("b"), make("small")]);
        button.addEventListener("click", () => { lab.set({show: kind.key}); });
        return button;
      }));
    }
    list.forEach((kind, k) => {
      const button = scores.children[k], parts = button.children, own = kind.key === "alike";
      button.setAttribute("aria-pressed", kind.key === view.state.show);
      parts[0].textContent = kind.label;
      parts[1].style.setProperty("--share", own ? 0 : view.scores[k]);
      parts[1].style.setProperty("--even", kind.even || 0);
      parts[1].style.setProperty("--mark", kind.even === undefined ? "none" : "block");
      parts[2].textContent = own ? "" : fixed(view.scores[k]);
      parts[3].textContent = own ? "find" : `rank ${view.ranks[k]}`;
    });
  }

  const nearest = make("div", {class: "abe-near"});

  function showNearest() {
    nearest.hidden = view.state.show !== "alike";
    nearest.replaceChildren(...nearest.hidden ? [] : view.nearest.map((h) => {
      const far = elsewhere(view.h, h, view.map[h]);
      const button = make("button", {type: "button"}, [make("b", {}, headName(h)),
        ` shares ${fixed(view.map[h])} here${far === null ? "" : `, ${fixed(far)} elsewhere`}`]);
      button.addEventListener("click", () => { pick(h); });
      return button;
    }));
  }

  // ------------------------------------------------------- the stage

  function stage() {
    const options = model.sentences.map((one, i) => make("option", {value: i + 1}, one.text));
    const menu = make("select", {id: "lab-heads-sentence"}, options);
    menu.addEventListener("change", () => { lab.set({sentence: +menu.value, word: model.sentences[menu.value - 1].word + 1}); });
    const input = make("input", {type: "file", id: "lab-heads-file", accept: ".json,application/json"});
    const back = lab.button({label: "Back to the sentences", press: lab.reset});
    input.addEventListener("change", () => { if (input.files[0]) open(input.files[0]); input.value = ""; });
    const sentences = make("div", {class: "abe-select"}, [make("label", {for: menu.id}, `A sentence that ${model.title} reads`), menu]);
    const own = make("div", {class: "abe-select"}, [make("span"), back]);
    const wordStep = {key: "word", label: "Word", min: 1, text: (i) => name(current(lab.state), i - 1)};
    const keyStep = {key: "key", label: "looks at", min: 1, text: wordStep.text};
    const layerStep = {key: "layer", label: "Layer", min: 1}, headStep = {key: "head", label: "Head", min: 1};
    const steps = [wordStep, keyStep, layerStep, headStep].map(lab.stepper);
    lab.bound.unshift((state) => {
      const now = current(state);
      wordStep.max = keyStep.max = now.tokens.length;
      layerStep.max = now.layers;
      headStep.max = now.heads;
      menu.value = state.sentence;
      sentences.hidden = Boolean(file);
      own.hidden = !file;
      own.firstChild.textContent = file ? `Your file: ${file.title}` : "";
      steps[0].hidden = Boolean(file && !file.matrices);
      steps[1].hidden = state.show !== "link";
    });
    const near = (parts) => { const row = lab.row(parts); row.style.gap = "0.25rem 0.5rem"; return row; };
    const side = (parts) => make("div", {class: "abe-side"}, parts);
    lab.stage.append(sentences, own, make("p", {class: "abe-hint"}, "Press a word, or a head on the map."),
      lab.row([side([near(steps.slice(0, 2)), arcs, pattern]), side([near(steps.slice(2)), map, nearest,
        make("p", {class: "abe-hint"}, "What this head is like (the mark on a bar: even weights). Press a line to color the map by it."), scores])]),
      make("details", {class: "abe-words"}, [make("summary", {}, "What the scores mean"), make("p", {}, heads.MEANING)]),
      make("details", {class: "abe-words"}, [make("summary", {}, "Open a file of your own"),
        make("p", {}, `It is read in this page and sent nowhere. ${heads.HOW}`), make("label", {for: input.id}, "What diagnose() wrote "), input]));
  }

  function open(chosen) {
    problem = "";
    (chosen.size > 1e8 ? Promise.reject(new Error(`“${chosen.name}” is larger than 100 MB.`)) : chosen.text()).then((text) => {
      file = heads.read(chosen.name, text);
      lab.set({layer: 1, head: 1, word: file.tokens.length, key: 1, show: "first"});
    }).catch((error) => {
      problem = error.message;
      lab.set({});
    });
  }

  // ------------------------------------------------------- what is seen

  function current(state) { return file || Object.assign({}, model, {tokens: model.sentences[state.sentence - 1].tokens}); }

  function repair(state) {
    state.sentence = clamp(state.sentence, model.sentences.length);
    const now = current(state);
    ["word", "key"].forEach((key) => { state[key] = clamp(state[key], now.tokens.length); });
    state.layer = clamp(state.layer, now.layers);
    state.head = clamp(state.head, now.heads);
  }

  function look(source, state) {
    view = heads.measure(source, state);
    [arcs, pattern].forEach((box) => { box.hidden = !source.matrices; });
    showScores();
    showNearest();
    lab.numbers({sentence: file ? 0 : state.sentence, row: view.row, pattern: view.pattern, map: view.map, scores: view.scores, ranks: view.ranks,
      nearest: view.nearest});
    return describe(source);
  }

  function describe(source) {
    const order = range(0, view.n).sort((a, b) => view.row[b] - view.row[a]), word = name(source, view.state.word - 1);
    const part = (j) => `${name(source, j)}, ${fixed(view.row[j])}`;
    let text = `In head ${headName(view.h)} of ${source.title}, ${word} gives most to ${part(order[0])}`;
    text += view.n > 1 && view.row[order[1]] > 0 ? `, then to ${part(order[1])}.` : ".";
    if (!source.matrices) text = `“${source.title}” has the numbers of its heads and no patterns (those take pictures=64 and to_dict(pictures=True)).`;
    if (view.kind.key !== "alike") {
      return `${text} ${view.kind.says} is ${fixed(view.map[view.h])}, rank ${view.rank} of ${view.map.length}.`;
    }
    const best = view.nearest[0], far = elsewhere(view.h, best, view.map[best]);
    return `${text} Most like it is head ${headName(best)}: they share ${fixed(view.map[best])} of their weight here` +
      `${far === null ? "" : `, and ${fixed(far)} in the other ${model.sentences.length - 1} sentences`}.`;
  }

  function follow(state) {
    const source = file || ready[state.sentence];
    if (!source) {
      load(state.sentence).then(() => { lab.set({}); }, (error) => { lab.say(`These weights could not be loaded: ${error.message}.`); });
      return "The weights of this sentence are on their way.";
    }
    if (state.show === "alike" && !alike && !file) {
      const data = `${lab.data.model}-alike`;
      window.abeLoad(`heads/${data}`).then(() => { alike = heads.bytes(data); lab.set({}); });
    }
    const sentence = look(source, state), said = problem;
    problem = "";
    return said || sentence;
  }

  lab.begin(Object.assign({sentence: 1, word: 1, key: 1, layer: 1, head: 1, show: "first"}, lab.data.begin), repair);
  const adopt = lab.adopt;
  lab.adopt = (texts) => { file = null; adopt(texts); }; // a reset closes the file
  return load(lab.state.sentence).then(() => {
    stage();
    lab.run(follow);
  });
}));
