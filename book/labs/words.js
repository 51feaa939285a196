/* The word vectors of the page, which book/_ext/page_vectors.py writes: those of 3,000 frequent words first, the others
   on demand. abeLabs.words = {vectors (a Map), load("first" or "rest"), whole(), tokens(text), near(word)}. */

(() => {
  "use strict";

  const make = abeLabs.element, D = 50;

  const vectors = new Map(), parts = {};

  /* A part: words that share their beginnings with the one before, and a letter for each number of their vectors. */
  function read(part) {
    const letters = [];
    for (let i = 1; i < 0x400; i++) if (i < 128 ? !'\n\r"\\'.includes(String.fromCharCode(i)) : i > 0xA0) letters.push(i);
    const step = new Int16Array(0x400);
    letters.forEach((letter, place) => { step[letter] = place % 2 ? -(place + 1) / 2 : place / 2; });
    let word = "", at = 0;
    part.words.match(/[A-Z][^A-Z]*/g).forEach((told) => {
      word = word.slice(0, told.charCodeAt(0) - 65) + told.slice(1);
      vectors.set(word, part.base.map((base, d) => base + part.step[d] * step[part.steps.charCodeAt(at + d)]));
      at += D;
    });
    Object.entries(part.thousandths).forEach(([known, numbers]) => { vectors.set(known, numbers.map((x) => x / 1000)); });
  }

  function load(name) {
    parts[name] = parts[name] || new Promise((done, fail) => {
      const tag = make("script", {src: `${document.documentElement.dataset.content_root}_static/labs/words-${name}.js`});
      tag.onload = () => {
        window.abeWords.splice(0).forEach(read);
        parts[name].there = true;
        done();
      };
      tag.onerror = () => { fail(new Error(`${tag.src} is not there`)); };
      document.head.append(tag);
    });
    return parts[name];
  }

  /* The tokens of the book: what stands between spaces, in lower case. Around an unknown one, signs are taken off. */
  function tokens(text) {
    return text.toLowerCase().split(/\s+/).filter(Boolean).map((token) => {
      const bare = token.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
      return vectors.has(token) || !bare ? token : bare;
    });
  }

  /* How many letters to add, take away or change; 3 stands for more than two. */
  function distance(a, b) {
    if (Math.abs(a.length - b.length) > 2) return 3;
    let before = Array.from({length: b.length + 1}, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      const row = [i];
      for (let j = 1; j <= b.length; j++) {
        row[j] = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      }
      if (Math.min(...row) > 2) return 3;
      before = row;
    }
    return before[b.length];
  }

  /* Up to four known words that look like this one: those that begin with it, or differ by two letters at most. */
  function near(word) {
    const found = [];
    let order = 0; // frequent words were read first
    vectors.forEach((_, known) => {
      const begins = word.length > 2 && known.startsWith(word) && known.length < word.length + 6;
      const far = begins ? 1 : distance(word, known);
      if (far < (word.length < 6 ? 2 : 3)) found.push([far + (known[0] === word[0] ? 0 : 0.5) + order / 1e6, known]);
      order++;
    });
    return found.sort((a, b) => a[0] - b[0]).slice(0, 4).map((one) => one[1]);
  }

  function whole() { return Boolean(parts.rest?.there); }

  abeLabs.words = {vectors, load, whole, tokens, near};
})();
