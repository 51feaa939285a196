/* The controls of the live figures. Each is bound to a key of the state, has its name in words, and is 44 pixels high.

   lab.slider, .choice, .toggle, .field, .stepper, .cells (a matrix of numbers) return an element to append;
   lab.button acts; lab.table sets elements in rows and columns. */

(() => {
  "use strict";

  const make = abeLabs.element;

  /* Arrow keys, Home and End move through the rows of buttons; Tab enters and leaves them as one. */
  function grid(rows) {
    function focus(i, j) {
      rows.forEach((row) => { row.forEach((button) => { button.tabIndex = -1; }); });
      rows[i][j].tabIndex = 0;
      rows[i][j].focus();
    }
    function pressed(event) {
      const i = rows.findIndex((row) => row.includes(event.currentTarget));
      const j = rows[i].indexOf(event.currentTarget), last = rows[i].length - 1;
      const to = {
        ArrowUp: [Math.max(i - 1, 0), j], ArrowDown: [Math.min(i + 1, rows.length - 1), j],
        ArrowLeft: [i, Math.max(j - 1, 0)], ArrowRight: [i, Math.min(j + 1, last)], Home: [i, 0], End: [i, last]
      }[event.key];
      if (!to) return;
      event.preventDefault();
      focus(to[0], to[1]);
    }
    rows.forEach((row, i) => {
      row.forEach((button, j) => {
        button.tabIndex = i + j ? -1 : 0;
        button.addEventListener("keydown", pressed);
        button.addEventListener("click", () => { focus(i, j); });
      });
    });
  }

  /* Drag with mouse, pen or finger. act: start(event), move(dx, dy, event), end(), each if it is there. A vertical
     swipe of a finger scrolls the page, unless act.both is true: then the drag may go any way. */
  function drag(target, act) {
    target.style.touchAction = act.both ? "none" : "pan-y";
    target.addEventListener("pointerdown", (down) => {
      if (down.button) return;
      let moving = false;
      function move(event) {
        const dx = event.clientX - down.clientX, dy = event.clientY - down.clientY;
        if (event.pointerId !== down.pointerId || !moving && Math.hypot(dx, dy) < 4) return;
        if (!moving) {
          moving = true;
          target.setPointerCapture(down.pointerId);
          if (act.start) act.start(down);
        }
        event.preventDefault();
        act.move(dx, dy, event);
      }
      function end(event) {
        if (event.pointerId !== down.pointerId) return;
        ["pointermove", "pointerup", "pointercancel"].forEach((name) => {
          target.removeEventListener(name, name === "pointermove" ? move : end);
        });
        if (moving && act.end) act.end();
      }
      target.addEventListener("pointermove", move);
      target.addEventListener("pointerup", end);
      target.addEventListener("pointercancel", end);
    });
  }

  /* The values from min to max, by steps of 1 or what step says. */
  function range(options) {
    const step = options.step || 1, n = Math.round((options.max - options.min) / step);
    return Array.from({length: n + 1}, (_, i) => +(options.min + i * step).toFixed(9));
  }

  function nearest(values, value) {
    return values.reduce((best, one, i) => Math.abs(one - value) < Math.abs(values[best] - value) ? i : best, 0);
  }

  abeLabs.extend((lab) => {
    let ids = 0;
    function id() { return `lab-${lab.name}-${++ids}`; }
    function change(key, value) { lab.set({[key]: value}); }

    /* options: key, label, values (or min, max, step), text(value) for what stands beside it. */
    lab.slider = (options) => {
      const values = options.values || range(options), text = options.text || String, name = id();
      const input = make("input", {type: "range", id: name, min: 0, max: values.length - 1, step: 1});
      const longest = Math.max(...values.map((value) => text(value).length));
      const shown = make("output", {for: name, style: `min-width:${longest}ch`});
      input.addEventListener("input", () => { change(options.key, values[+input.value]); });
      lab.bound.push((state) => {
        input.value = nearest(values, state[options.key]);
        shown.textContent = text(state[options.key]);
        input.setAttribute("aria-valuetext", text(state[options.key]));
      });
      return make("div", {class: "abe-slider"}, [make("label", {for: name}, options.label), input, shown]);
    };

    /* A few values side by side. options: key, label, options ([{value, label}, ...]). */
    lab.choice = (options) => {
      const name = id(), inputs = options.options.map((one, i) => {
        const input = make("input", {type: "radio", name, id: `${name}-${i}`});
        input.addEventListener("change", () => { change(options.key, one.value); });
        return input;
      });
      lab.bound.push((state) => {
        inputs.forEach((input, i) => { input.checked = options.options[i].value === state[options.key]; });
      });
      return make("fieldset", {class: "abe-choice"}, [make("legend", {}, options.label)].concat(
        inputs.map((input, i) => make("label", {for: input.id}, [input, make("span", {}, options.options[i].label)]))));
    };

    /* On or off. */
    lab.toggle = (options) => {
      const input = make("input", {type: "checkbox"});
      input.addEventListener("change", () => { change(options.key, input.checked); });
      lab.bound.push((state) => { input.checked = state[options.key]; });
      return make("label", {class: "abe-toggle"}, [input, make("span", {}, options.label)]);
    };

    /* A line of text. options: key, label, max (letters). */
    lab.field = (options) => {
      const name = id(), input = make("input", {
        type: "text", id: name, maxlength: options.max || 120, autocomplete: "off", autocapitalize: "off",
        spellcheck: "false"
      });
      input.addEventListener("input", () => { change(options.key, input.value); });
      lab.bound.push((state) => { if (input.value !== state[options.key]) input.value = state[options.key]; });
      return make("div", {class: "abe-field"}, [make("label", {for: name}, options.label), input]);
    };

    /* One step back or forth. options: key, label, min, max (a number or a function), text(value). */
    lab.stepper = (options) => {
      const text = options.text || String, shown = make("output", {});
      function most() { return typeof options.max === "function" ? options.max() : options.max; }
      const buttons = [["−", "one less", -1], ["+", "one more", 1]].map((one) => {
        const button = make("button", {type: "button", "aria-label": `${options.label}: ${one[1]}`}, one[0]);
        button.addEventListener("click", () => {
          change(options.key, Math.min(Math.max(lab.state[options.key] + one[2], options.min), most()));
        });
        return button;
      });
      lab.bound.push((state) => {
        shown.textContent = text(state[options.key]);
        buttons[0].setAttribute("aria-disabled", state[options.key] <= options.min);
        buttons[1].setAttribute("aria-disabled", state[options.key] >= most());
      });
      return make("div", {class: "abe-stepper", role: "group", "aria-label": options.label},
        [make("span", {}, options.label), buttons[0], shown, buttons[1]]);
    };

    /* A matrix of numbers to write into, or to drag left and right. options: key (a list, row by row), caption,
       rows and columns (their names), step, min, max, label(i, j): the name of a number in words. */
    lab.cells = (options) => {
      const width = options.columns.length, step = options.step || 1;
      function write(index, value) {
        const list = lab.state[options.key].slice();
        list[index] = +Math.min(Math.max(value, options.min), options.max).toFixed(6);
        change(options.key, list);
      }
      function cell(i, j) {
        const index = i * width + j, input = make("input", {
          type: "number", class: "abe-number", step, min: options.min, max: options.max,
          "aria-label": options.label(i, j)
        });
        let before = 0;
        input.addEventListener("input", () => {
          if (input.value !== "" && Number.isFinite(+input.value)) write(index, +input.value);
        });
        input.addEventListener("blur", () => { input.value = lab.state[options.key][index]; });
        drag(input, {
          start: () => { before = lab.state[options.key][index]; },
          move: (dx) => { write(index, before + step * Math.round(dx / 12)); }
        });
        lab.bound.push((state) => {
          if (+input.value !== state[options.key][index] || input.value === "" && input !== document.activeElement) {
            input.value = state[options.key][index];
          }
        });
        return input;
      }
      return lab.table({caption: options.caption, rows: options.rows, columns: options.columns, cell}).element;
    };

    lab.button = (options) => {
      const button = make("button", {type: "button", class: "abe-button"}, options.label);
      button.addEventListener("click", options.press);
      return button;
    };

    /* {element, cells}. options: caption, rows and columns (names), cell(i, j): what stands there (an element). */
    lab.table = (options) => {
      const cells = options.rows.map((_, i) => options.columns.map((_, j) => options.cell(i, j)));
      const heads = options.columns.map((name) => make("th", {scope: "col"}, name));
      const body = options.rows.map((name, i) => make("tr", {}, [make("th", {scope: "row"}, name)].concat(cells[i].map((cell) => make("td", {}, cell)))));
      return {cells, element: make("table", {}, [make("caption", {}, options.caption),
        make("thead", {}, make("tr", {}, [make("td")].concat(heads))), make("tbody", {}, body)])};
    };

    /* Elements side by side, which wrap on a narrow screen. */
    lab.row = (children) => make("div", {class: "abe-row"}, children);
  });

  Object.assign(abeLabs, {grid, drag});
})();
