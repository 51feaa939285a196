/* Mathematics of the live figures, in the numbers of attn_utils: matrices are lists of rows. */

(() => {
  "use strict";

  function sum(list) { return list.reduce((a, b) => a + b, 0); }
  function mean(list) { return sum(list) / list.length; }
  function dot(a, b) { // a plain loop: most of the time of a figure is spent here
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] * b[i];
    return total;
  }
  function transpose(A) { return A[0].map((_, j) => A.map((row) => row[j])); }
  function norm(list) { return Math.sqrt(dot(list, list)); }

  /* A @ B. A row of zeros gives a row of zeros. */
  function matmul(A, B) {
    const columns = transpose(B);
    return A.map((row) => columns.map((column) => dot(row, column)));
  }

  /* A list of rows * columns numbers as a matrix. */
  function reshape(list, rows, columns) {
    return Array.from({length: rows}, (_, i) => list.slice(i * columns, (i + 1) * columns));
  }

  /* softmax() of one row. allowed: which scores count; the others weigh 0, and so do all where none counts. */
  function softmax(scores, allowed) {
    const counts = scores.map((_, j) => !allowed || allowed[j]);
    const top = Math.max(...scores.filter((_, j) => counts[j]));
    const parts = scores.map((score, j) => counts[j] ? Math.exp(score - top) : 0);
    const total = sum(parts);
    return parts.map((part) => total ? part / total : 0);
  }

  /* attention(): {scores, weights, output}. options: mask (rows of booleans), scale (1 / sqrt(d_k) when left out). */
  function attention(Q, K, V, options) {
    const given = options || {};
    const scale = given.scale === undefined ? 1 / Math.sqrt(K[0].length) : given.scale;
    const scores = matmul(Q, transpose(K)).map((row) => row.map((s) => s * scale));
    const weights = scores.map((row, i) => softmax(row, given.mask?.[i]));
    return {scores, weights, output: matmul(weights, V)};
  }

  /* In nats, as everywhere in the book. */
  function entropy(weights) {
    return -sum(weights.map((w) => w > 0 ? w * Math.log(w) : 0));
  }

  /* Numbers from 0 to 1 by mulberry32; page_normals() in attn_utils has it in Python. */
  function uniforms(seed) {
    let a = seed >>> 0;
    return () => {
      a = (a + 0x6D2B79F5) >>> 0;
      let t = Math.imul(a ^ (a >>> 15), a | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  /* n standard normal numbers, by Box and Muller: of each pair of uniforms both, the cosine first. */
  function normals(seed, n) {
    const next = uniforms(seed), found = [];
    while (found.length < n) {
      const radius = Math.sqrt(-2 * Math.log(1 - next())), angle = 2 * Math.PI * next();
      found.push(radius * Math.cos(angle), radius * Math.sin(angle));
    }
    return found.slice(0, n);
  }

  /* Turn the rows of a small matrix in pairs until they are orthogonal (one-sided Jacobi): {rows, turns}, rows = turns @ A. */
  function orthogonal(A) {
    const rows = A.map((row) => row.slice()), turns = A.map((_, i) => A.map((__, j) => Number(i === j)));
    for (let sweep = 0, turned = true; turned && sweep < 60; sweep++) {
      turned = false;
      for (let p = 0; p < rows.length; p++) {
        for (let q = p + 1; q < rows.length; q++) {
          const aa = dot(rows[p], rows[p]), bb = dot(rows[q], rows[q]), ab = dot(rows[p], rows[q]);
          if (Math.abs(ab) <= 1e-15 * Math.sqrt(aa * bb) || ab === 0) continue;
          const zeta = (bb - aa) / (2 * ab);
          const t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta)), c = 1 / Math.hypot(1, t);
          turned = true;
          [rows, turns].forEach((M) => { turn(M[p], M[q], c, c * t); });
        }
      }
    }
    return {rows, turns};
  }

  function turn(a, b, c, s) {
    a.forEach((x, i) => {
      a[i] = c * x - s * b[i];
      b[i] = s * x + c * b[i];
    });
  }

  /* The singular values of a small matrix, the largest first. */
  function singularValues(A) { return orthogonal(A.length <= A[0].length ? A : transpose(A)).rows.map(norm).sort((a, b) => b - a); }

  /* A number as a text with so many decimals and a true minus; never "−0.00". */
  function fixed(value, digits) {
    const text = value.toFixed(digits === undefined ? 2 : digits);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  }

  Object.assign(abeLabs, {
    sum, mean, dot, norm, transpose, matmul, reshape,
    softmax, attention, entropy, uniforms, normals,
    singularValues, orthogonal, fixed: fixed
  });
})();
