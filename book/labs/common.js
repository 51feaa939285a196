/* What the live figures share: elements, the keyboard, announcing, and attention in the numbers of attn_utils. */

window.abeLabs = (function () {
  "use strict";

  var known = {};

  function define(name, fill) { known[name] = fill; }

  function start(name, stage, data, figure) {
    if (!known[name]) throw new Error(name + ".js defines no figure of this name");
    known[name](stage, data, figure);
  }

  /* An element with attributes and children, which are elements or texts. */
  function element(tag, attributes, children) {
    var made = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    [].concat(children === undefined ? [] : children).forEach(function (child) { made.append(child); });
    return made;
  }

  /* A function that shows a sentence below the stage and has it read out. */
  function announcer(stage) {
    var line = element("p", {"class": "abe-said", role: "status"});
    stage.append(line);
    return function (text) { line.textContent = text; };
  }

  /* Arrow keys, Home and End move through the rows of buttons; Tab enters and leaves them as one. */
  function grid(rows) {
    function place(button) {
      for (var i = 0; i < rows.length; i++) {
        if (rows[i].indexOf(button) >= 0) return [i, rows[i].indexOf(button)];
      }
    }
    function focus(i, j) {
      rows.forEach(function (row) { row.forEach(function (button) { button.tabIndex = -1; }); });
      rows[i][j].tabIndex = 0;
      rows[i][j].focus();
    }
    function pressed(event) {
      var at = place(event.currentTarget), last = rows[at[0]].length - 1;
      var to = {
        ArrowUp: [Math.max(at[0] - 1, 0), at[1]], ArrowDown: [Math.min(at[0] + 1, rows.length - 1), at[1]],
        ArrowLeft: [at[0], Math.max(at[1] - 1, 0)], ArrowRight: [at[0], Math.min(at[1] + 1, last)],
        Home: [at[0], 0], End: [at[0], last]
      }[event.key];
      if (!to) return;
      event.preventDefault();
      focus(to[0], to[1]);
    }
    rows.forEach(function (row, i) {
      row.forEach(function (button, j) {
        button.tabIndex = i + j ? -1 : 0;
        button.addEventListener("keydown", pressed);
        button.addEventListener("click", function () { focus(i, j); });
      });
    });
  }

  /* softmax() of the allowed scores of one row; forbidden ones weigh 0, and so do all where none is allowed. */
  function softmax(scores, allowed) {
    var top = Math.max.apply(null, scores.filter(function (_, j) { return allowed[j]; }));
    var parts = scores.map(function (score, j) { return allowed[j] ? Math.exp(score - top) : 0; });
    var total = parts.reduce(function (a, b) { return a + b; }, 0);
    return parts.map(function (part) { return total ? part / total : 0; });
  }

  /* weights @ values for one row of weights. */
  function mix(weights, values) {
    return values[0].map(function (_, c) {
      return weights.reduce(function (sum, weight, j) { return sum + weight * values[j][c]; }, 0);
    });
  }

  return {define: define, start: start, element: element, announcer: announcer, grid: grid, softmax: softmax, mix: mix};
})();
