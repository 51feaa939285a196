/* Chapter 6's task by hand: output nothing at rest, and the mean of the tokens at the trigger.

   data: tokens (rows of two numbers; the last one is the trigger). Every token but BOS gets one score from a token at
   rest and another from the trigger; the score of BOS is 0. A token passes on `keep` times itself, BOS the number `bos`
   in both coordinates. */

abeLabs.define("nothing", (lab) => {
  "use strict";

  const fixed = abeLabs.fixed, tokens = lab.data.tokens, n = tokens.length, best = {}, tried = {}, told = {};
  const RULES = [["softmax", "softmax"], ["softmax1", "softmax1"], ["sink", "sink logit", "sink"], ["relu", "ReLU"]];
  const target = [0, 1].map((c) => abeLabs.mean(tokens.map((row) => row[c])));
  const LIMITS = {rest: [-8, 8], trigger: [-8, 8], keep: [0, 1.5], bos: [-1, 1], sink: [-4, 4]};

  lab.begin({rule: "softmax", withBos: true, rest: 0, trigger: 0, keep: 1, bos: 0.5, sink: 0}, (state) => {
    if (!RULES.some((rule) => rule[0] === state.rule)) state.rule = "softmax";
    Object.keys(LIMITS).forEach((key) => { state[key] = Math.min(Math.max(state[key], LIMITS[key][0]), LIMITS[key][1]); });
  });

  // ------------------------------------------------------- what attn_utils.weightings computes

  /* Weights of one row: BOS first where there is one, then `many` tokens that score `score`. */
  function weigh(state, score, many) {
    const scores = (state.withBos ? [0] : []).concat(Array(many).fill(score));
    if (state.rule === "relu") return scores.map((s) => Math.max(s, 0) / many); // BOS does not count
    if (state.rule === "softmax") return abeLabs.softmax(scores);
    return abeLabs.softmax(scores.concat(state.rule === "sink" ? state.sink : 0)).slice(0, -1);
  }

  function output(state, weights, many) {
    return [0, 1].map((c) => abeLabs.dot(weights, (state.withBos ? [state.bos] : []).concat(tokens.slice(0, many).map((row) => state.keep * row[c]))));
  }

  function far(row, from) { return Math.max(Math.abs(row[0] - from[0]), Math.abs(row[1] - from[1])); }

  /* Rows 1 to n - 1 are at rest and see as many tokens as their number; the trigger sees all. */
  function compute(state) {
    const rest = tokens.slice(1).map((_, i) => weigh(state, state.rest, i + 1)), trigger = weigh(state, state.trigger, n);
    const outputs = rest.map((weights, i) => output(state, weights, i + 1)), last = output(state, trigger, n);
    const errors = [Math.max(...outputs.map((row) => far(row, [0, 0]))), far(last, target)];
    return {rest, trigger, outputs: outputs.concat([last]), errors, worst: Math.max(errors[0], errors[1])};
  }

  // ------------------------------------------------------- the best that this kind of head can do

  /* The least possible error, and on these sliders the settings that come nearest. Without BOS the softmax gives all
     tokens 1/many, whatever the scores, so that only `keep` is left: it weighs one error against the other. */
  function optimum(state) {
    const settings = {rest: -8, trigger: 8, keep: 1, bos: 0, sink: 0};
    if (state.rule === "relu") return {least: 0, settings: Object.assign(settings, {rest: 0, trigger: 1}), words: "0 exactly, since a ReLU can give a weight of 0"};
    if (state.rule === "softmax" && !state.withBos) {
      const even = compute(Object.assign({}, state, {keep: 1})).errors[0], all = far(target, [0, 0]);
      settings.keep = +(Math.round(20 * all / (even + all)) / 20).toFixed(2);
      return {least: even * all / (even + all), settings, words: ", since all weights are even whatever the scores, and what is kept at the trigger leaks at rest"};
    }
    return {least: 0, settings, words: "as near to 0 as you like and never 0: the lower the score at rest and the higher at the trigger, the smaller both errors"};
  }

  // ------------------------------------------------------- pictures

  let now = null;

  /* [BOS, tokens, nowhere]: where the weight of a row goes. */
  function shares(weights) {
    const bos = lab.state.withBos ? weights[0] : 0, all = abeLabs.sum(weights);
    return [bos, all - bos, Math.max(1 - all, 0)];
  }

  const plane = lab.picture({height: (width) => Math.min(width, 300) + 48, draw: (pen) => {
    const size = Math.min(pen.width, 300), top = pen.key(0, 8, [{text: "tokens", color: "gray", shape: "circle"},
      {text: "outputs at rest", color: "orange", shape: "diamond"}, {text: "at the trigger", color: "blue", shape: "square"}, {text: "targets", color: "green", shape: "triangle"}]);
    const reach = 1.05 * Math.max(1, ...now.outputs.flat().map(Math.abs));
    const at = (row) => [size / 2 * (1 + row[0] / reach), top + size / 2 * (1 - row[1] / reach)];
    pen.line(0, top + size / 2, size, top + size / 2);
    pen.line(size / 2, top, size / 2, top + size);
    tokens.forEach((row) => { pen.mark(...at(row), {color: "gray", hollow: true}); });
    now.outputs.forEach((row, i) => { pen.line(...at(row), ...at(i < n - 1 ? [0, 0] : target), {color: i < n - 1 ? "orange" : "blue", width: 2}); });
    [[0, 0], target].forEach((row) => { pen.mark(...at(row), {color: "green", size: 7, shape: "triangle"}); });
    now.outputs.forEach((row, i) => { pen.mark(...at(row), i < n - 1 ? {color: "orange", size: 5, shape: "diamond"} : {color: "blue", size: 6, shape: "square"}); });
    return `Outputs at rest are up to ${fixed(now.errors[0])} from the origin, that of the trigger is ${fixed(now.errors[1])} from its target.`;
  }});

  const bars = lab.picture({height: 224, draw: (pen) => {
    const room = pen.width - 56, mine = best[kind()], goal = told[kind()] ? optimum(lab.state).least : undefined, top = Math.max(0.4, now.worst);
    const rows = [now.rest[n - 2], now.trigger].map(shares), length = (error) => Math.min(error / top, 1) * (room - 44);
    pen.text(0, 8, "Where the weight goes");
    pen.text(0, 124, "Largest errors");
    ["at rest", "trigger"].forEach((name, i) => {
      let x = 56;
      pen.text(0, 33 + 28 * i, name);
      rows[i].forEach((share, k) => {
        const width = share * room / Math.max(1, rows[i][0] + rows[i][1]);
        pen.rect(x, 22 + 28 * i, width, 22, k < 2 ? {color: ["amber", "sky"][k]} : {opacity: 0, edge: "faint"});
        x += width;
      });
      pen.text(0, 145 + 34 * i, name);
      pen.rect(56, 136 + 34 * i, length(now.errors[i]), 18, {color: ["orange", "blue"][i]});
      pen.text(62 + length(now.errors[i]), 145 + 34 * i, fixed(now.errors[i], 3));
    });
    pen.key(0, 90, [{text: "BOS", color: "amber", shape: "square"}, {text: "tokens", color: "sky", shape: "square"}, {text: "empty: nowhere", color: "paper", shape: "square"}]);
    if (mine !== undefined) pen.line(56 + length(mine), 130, 56 + length(mine), 192, {color: "ink", dash: "4 3", width: 2});
    if (goal !== undefined) pen.line(56 + length(goal), 130, 56 + length(goal), 192, {color: "green", width: 2});
    const words = [mine === undefined ? "" : `dashed: your best so far, ${fixed(mine, 3)}`, goal === undefined ? "" : "green: the best possible"];
    pen.text(0, 202, words.filter(Boolean).join("; "), {color: "faint", size: 11});
    return ["At rest", "At the trigger"].map((name, i) => `${name} BOS gets ${fixed(rows[i][0])} of the weight and the tokens ${fixed(rows[i][1])}.`).join(" ");
  }});

  // ------------------------------------------------------- the stage

  const slider = (key, label, step) => lab.slider({key, label, min: LIMITS[key][0], max: LIMITS[key][1], step, text: (value) => fixed(value)});
  const ofBos = slider("bos", "What BOS passes on", 0.05), ofSink = slider("sink", "Score of the sink", 0.5);
  const show = lab.button({label: "Show the best possible", press: () => {
    if (!(tried[kind()] >= 3)) { lab.say("Try first: move the sliders a few times, then look."); return; }
    told[kind()] = true;
    lab.set(optimum(lab.state).settings);
  }});
  lab.bound.push((state) => {
    ofBos.hidden = !state.withBos;
    ofSink.hidden = state.rule !== "sink";
  });
  lab.stage.append(
    lab.row([lab.choice({key: "rule", label: "From scores to weights", options: RULES.map((rule) => ({value: rule[0], label: rule[2] || rule[1]}))}),
      lab.toggle({key: "withBos", label: "with BOS (score 0)"})]),
    lab.row([abeLabs.element("div", {class: "abe-side"}, [
      slider("rest", "Score of the tokens at rest", 0.25), slider("trigger", "Score of the tokens at the trigger", 0.25),
      slider("keep", "What a token passes on", 0.05), ofBos, ofSink, show]),
      abeLabs.element("div", {class: "abe-side"}, [bars, plane])]));

  function kind() { return lab.state.rule + lab.state.withBos; }

  lab.run((state, key) => {
    now = compute(state);
    if (key in LIMITS) tried[kind()] = (tried[kind()] || 0) + 1;
    if (lab.ready && key in LIMITS && !told[kind()]) best[kind()] = Math.min(now.worst, best[kind()] === undefined ? Infinity : best[kind()]);
    lab.numbers({weights: now.rest[n - 2], trigger: now.trigger, outputs: now.outputs, errors: now.errors, least: optimum(state).least});
    show.setAttribute("aria-disabled", !(tried[kind()] >= 3));
    const part = shares(now.rest[n - 2]), rule = RULES.find((one) => one[0] === state.rule)[1];
    let text = `With the ${rule}, ${state.withBos ? "with" : "without"} BOS, the largest error is ${fixed(now.errors[0], 3)} at rest and ` +
      `${fixed(now.errors[1], 3)} at the trigger. At rest, ${state.withBos ? `BOS gets ${fixed(part[0])} of the weight, ` : ""}the tokens get ${fixed(part[1])}` +
      `${state.rule === "softmax" ? "." : `, and ${fixed(part[2])} goes nowhere.`}`;
    if (told[kind()]) text += ` The best possible is ${optimum(state).least ? fixed(optimum(state).least, 3) : ""}${optimum(state).words}.`;
    return text;
  });
});
