/* What heads.js shows: weights out of a script with 8 bits for each, or out of a file of the reader's own, and the
   scores of a head. A source is {title, layers, heads, causal, tokens, matrices (one for each head, layer by layer; null
   for a file without patterns), given (for a file: what it says of each head)}. */

window.abeHeads = (() => {
  "use strict";

  const known = {}, mean = abeLabs.mean, sum = abeLabs.sum;
  const MOST = 64; // tokens of a file

  /* Each script with data calls this. */
  function add(name, content) { known[name] = content; }

  function bytes(name) { return Uint8Array.from(atob(known[name]), (c) => c.charCodeAt(0)); }

  /* The weights of head h, (n, n), from the bytes of all. */
  function unpack(list, h, n, causal) {
    const start = h * (causal ? n * (n + 1) / 2 : n * n);
    return Array.from({length: n}, (_, i) => Array.from({length: n}, (_, j) => causal && j > i ? 0 : list[start + (causal ? i * (i + 1) / 2 : i * n) + j] / 255));
  }

  const HOW = "Make one with attn-diagnose FILE --json mine.json --patterns, or with found = diagnose(…, tokens=tokens, pictures=64) and json.dump(found.to_dict(pictures=True), file).";

  /* What diagnose(...).to_dict() wrote, as a source. */
  function read(name, text) {
    let found = null;
    try { found = JSON.parse(text); } catch (_error) { throw new Error(`“${name}” is no JSON. ${HOW}`); }
    const one = found?.sequences?.length ? found.sequences[0] : found;
    const layers = one && Array.isArray(one.layers) ? one.layers : [];
    if (!layers.length || !layers.every((l) => Array.isArray(l?.heads) && l.heads.length && l.heads.every((h) => h && typeof h === "object"))) {
      throw new Error(`“${name}” holds no layers with heads. ${HOW}`);
    }
    const heads = layers[0].heads.length;
    if (!layers.every((l) => l.heads.length === heads)) {
      throw new Error(`The layers in “${name}” differ in their number of heads, expected the same in each.`);
    }
    if (heads * layers.length > 4096) throw new Error(`“${name}” has ${heads * layers.length} heads, expected at most 4,096.`);
    const matrices = one.pictures && layers.flatMap((l, i) => l.heads.map((_, j) => square(name, one.pictures[`${i + 1},${j + 1}`], l.n_keys)));
    const n = matrices ? matrices[0].length : 1;
    if (matrices?.some((A) => A.length !== n)) throw new Error(`The patterns in “${name}” differ in size, expected the same for each head.`);
    const whole = Array.isArray(one.tokens) && one.tokens.length === n;
    return {title: name, layers: layers.length, heads, causal: Boolean(layers[0].pattern?.causal),
      tokens: whole ? one.tokens.map((token) => String(token).slice(0, 40)) : Array.from({length: n}, (_, i) => String(i + 1)), matrices,
      given: layers.flatMap((l) => l.heads)};
  }

  function square(name, A, tokens) {
    const n = Array.isArray(A) ? A.length : 0;
    if (!n || n > MOST || !A.every((row) => Array.isArray(row) && row.length === n && row.every(Number.isFinite))) {
      throw new Error(`“${name}” has a head without a square pattern of at most ${MOST} tokens. ${HOW}`);
    }
    const wide = tokens > n ? tokens / n : 1; // cells over several tokens are means: rows sum to 1 again
    return A.map((row) => row.map((weight) => weight * wide));
  }

  // ------------------------------------------------------- scores of a head

  function name(source, i) { return `“${source.tokens[i].trim() || "↵"}”`; }
  function range(from, to) { return Array.from({length: Math.max(to - from, 0)}, (_, i) => from + i); }

  /* The mean of A[i][j] over pairs of places. */
  function over(pairs) {
    return (A) => mean(pairs.map((p) => A[p[0]][p[1]]));
  }

  function repeats(source) {
    const found = [];
    source.tokens.forEach((token, i) => {
      const before = source.tokens.slice(0, i).lastIndexOf(token);
      if (source.causal && before >= 0 && before + 1 < i) found.push([i, before + 1]);
      if (!source.causal && source.tokens.indexOf(token) !== source.tokens.lastIndexOf(token)) found.push([i]);
    });
    return found;
  }

  /* The weight on the other places of the same word, mean over words that come more than once. */
  function onSame(source, pairs) {
    return (A) => mean(pairs.map((p) => sum(A[p[0]].filter((_, j) => j !== p[0] && source.tokens[j] === source.tokens[p[0]]))));
  }

  /* [{key, label, says, of(A)}], says: what the caption calls it. */
  function kinds(source, state) {
    const n = source.tokens.length, pairs = repeats(source);
    const given = (key, label, number) => ({key, label, says: `Its share of weight for the ${label.toLowerCase()}`, of: (_, h) => +source.given[h][number]});
    if (!source.matrices) {
      return [given("first", "Strongest key", "sink"), given("previous", "Previous token", "to_previous"),
        given("next", "Next token", "to_next"), given("itself", "Own token", "to_self")];
    }
    const mine = source.matrices[(state.layer - 1) * source.heads + state.head - 1], start = source.causal ? 1 : 0;
    const pair = `${name(source, state.word - 1)} to ${name(source, state.key - 1)}`;
    const list = [
      {key: "first", label: `${name(source, 0)}, as a sink`, says: `Its mean weight on ${name(source, 0)}`,
        of: over(range(1, n).map((i) => [i, 0]))},
      {key: "last", label: name(source, n - 1), says: `Its mean weight on ${name(source, n - 1)}`, hide: !/^(\[SEP\]|<\/s>)$/.test(source.tokens[n - 1]),
        of: over(range(0, n - 1).map((i) => [i, n - 1]))},
      {key: "previous", label: "Previous token", says: "Its mean weight on the previous token",
        of: over(range(1, n).map((i) => [i, i - 1]))},
      {key: "next", label: "Next token", says: "Its mean weight on the next token", hide: source.causal,
        of: over(range(0, n - 1).map((i) => [i, i + 1]))},
      {key: "itself", label: "Itself", says: "The mean weight of a token on itself", of: over(range(start, n).map((i) => [i, i]))},
      {key: "copy", label: source.causal ? "Copying" : "Same word", hide: !pairs.length,
        says: source.causal ? "Where a token comes back, its mean weight on what followed last time" : "Its mean weight on the same word elsewhere",
        of: source.causal ? over(pairs) : onSame(source, pairs)},
      {key: "link", label: pair, says: `The weight from ${pair}`, of: over([[state.word - 1, state.key - 1]])},
      {key: "alike", label: "Like this head", says: "", of: (A) => shared(A, mine, start)}
    ];
    return list.filter((kind) => !kind.hide);
  }

  /* How alike two heads are: the weight that both put on the same tokens, mean over rows. */
  function shared(A, B, start) {
    return mean(A.slice(start).map((row, i) => sum(row.map((weight, j) => Math.min(weight, B[i + start][j])))));
  }

  /* What is seen of a source in a state: the scores of the head that is chosen, those of all for the map, who is alike. */
  function measure(source, state) {
    const n = source.tokens.length, h = (state.layer - 1) * source.heads + state.head - 1, list = kinds(source, state);
    const kind = list.find((one) => one.key === state.show) || list[0], all = source.matrices || source.given;
    const even = range(0, n).map((i) => range(0, n).map((j) => !source.causal ? 1 / n : j > i ? 0 : 1 / (i + 1)));
    const view = {source, state: Object.assign({}, state, {show: kind.key}), n, h, kind, kinds: list, high: n > 20 ? 16 : 24};
    const values = list.map((one) => all.map((A, k) => one.of(A, k) || 0));
    view.pattern = source.matrices ? source.matrices[h] : [[0]];
    view.row = view.pattern[source.matrices ? state.word - 1 : 0];
    view.map = values[list.indexOf(kind)];
    view.scores = values.map((one) => one[h]);
    view.ranks = values.map((one) => one.filter((v) => v > one[h] + 1e-9).length + 1);
    view.rank = view.ranks[list.indexOf(kind)];
    if (source.matrices) list.forEach((one) => { if (one.key !== "alike") one.even = one.of(even); });
    view.nearest = range(0, all.length).filter((k) => k !== h).sort((a, b) => view.map[b] - view.map[a]).slice(0, 5);
    return view;
  }

  /* Where the cells of the map lie: the longer side across. */
  function grid(s, width) {
    const across = s.layers > s.heads, columns = across ? s.layers : s.heads, rows = across ? s.heads : s.layers;
    const high = Math.max(Math.min(200 / rows, 30), 18);
    return {across, columns, rows, left: 22, top: 36, w: (width - 24) / columns, high,
      head: (c, r) => across ? c * s.heads + r : r * s.heads + c};
  }

  const MEANING = "Each is a mean over the tokens of this sentence that can look so; the mark on a bar is what even weights would give, and a " +
    "rank of 1 is the highest of all heads. As a sink: the weight that the other tokens give to the first. Copying: where a token came " +
    "before, the weight on the token that followed it. Same word: the weight on other places of a word that comes twice. Like this head: the " +
    "weight that both heads put on the same tokens, mean over rows; “elsewhere” is the mean over the other sentences. The weights are " +
    "stored in 8 bits, so that each is within 1/255 of the model's.";

  return {known, add, bytes, unpack, read, measure, grid, name, range, HOW, MEANING};
})();
