/* A mask whose places are clicked away: weights and outputs are computed again at each click.

   data: tokens (n texts), scores (n rows of n, already divided by the root of d_k), values (n rows of d_v). It begins
   with the causal mask: a token looks at itself and at what came before. */

abeLabs.define("mask", function (stage, data) {
  "use strict";

  var make = abeLabs.element, n = data.tokens.length;
  if (data.scores.length !== n || data.values.length !== n) throw new Error("scores and values need a row for each token");
  var allowed = data.scores.map(function (row, i) { return row.map(function (_, j) { return j <= i; }); });

  var buttons = data.tokens.map(function (_, i) {
    return data.tokens.map(function (_, j) {
      var button = make("button", {type: "button", "class": "abe-place"});
      button.addEventListener("click", function () { toggle(i, j); });
      return button;
    });
  });
  var results = data.values.map(function (row) { return row.map(function () { return make("td"); }); });

  function table(caption, heads, rows) {
    var top = make("tr", {}, [make("td")].concat(heads.map(function (head) { return make("th", {scope: "col"}, head); })));
    var body = rows.map(function (cells, i) {
      return make("tr", {}, [make("th", {scope: "row"}, data.tokens[i])].concat(cells));
    });
    return make("table", {}, [make("caption", {}, caption), make("thead", {}, top), make("tbody", {}, body)]);
  }

  function show(i) {
    var weights = abeLabs.softmax(data.scores[i], allowed[i]);
    buttons[i].forEach(function (button, j) {
      var open = allowed[i][j];
      button.textContent = open ? weights[j].toFixed(2) : "–";
      button.dataset.weight = weights[j].toFixed(6);
      button.style.backgroundColor = open ? "rgba(0, 114, 178, " + (0.7 * weights[j]).toFixed(3) + ")" : "";
      button.setAttribute("aria-pressed", String(open));
      button.setAttribute("aria-label", data.tokens[i] + " looks at " + data.tokens[j] +
        (open ? ": weight " + weights[j].toFixed(2) : ": forbidden"));
    });
    abeLabs.mix(weights, data.values).forEach(function (value, c) {
      results[i][c].textContent = value.toFixed(2).replace("-", "−");
      results[i][c].dataset.value = value.toFixed(6);
    });
    return weights;
  }

  function toggle(i, j) {
    allowed[i][j] = !allowed[i][j];
    var weights = show(i), open = [];
    weights.forEach(function (weight, k) { if (allowed[i][k]) open.push(data.tokens[k] + " " + weight.toFixed(2)); });
    say("“" + data.tokens[i] + "” " + (open.length ? "looks at " + open.join(", ") : "looks at nothing: its output is 0") + ".");
  }

  var again = make("button", {type: "button", "class": "abe-button"}, "Causal mask again");
  again.addEventListener("click", function () {
    allowed.forEach(function (row, i) { row.forEach(function (_, j) { row[j] = j <= i; }); show(i); });
    say("Each token looks at itself and at what came before.");
  });

  var places = buttons.map(function (row) { return row.map(function (button) { return make("td", {}, button); }); });
  var columns = data.values[0].map(function (_, c) { return String(c + 1); });
  stage.append(make("p", {}, "Click a place to forbid or allow it; with the keyboard, arrows and the space bar."));
  stage.append(make("div", {"class": "abe-tables"}, [
    table("Weights: a row looks at the columns", data.tokens, places),
    table("Outputs: weights times values", columns, results)
  ]));
  stage.append(again);
  var say = abeLabs.announcer(stage);
  abeLabs.grid(buttons);
  data.tokens.forEach(function (_, i) { show(i); });
});
