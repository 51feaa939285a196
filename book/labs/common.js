/* What every live figure stands on: its state, which the page's address keeps, its sentence and its buttons.

   numbers.js, controls.js and drawing.js add to it. How to write a figure: see mask.js.
*/

window.abeLabs = (() => {
  "use strict";

  const kinds = {}, running = Object.create(null), extensions = [];
  const QUIET = 400; // milliseconds without a change, before the address is written and the sentence read out

  /* build(lab) fills the stage; where it has to wait for data, it returns a promise. */
  function define(name, build) { kinds[name] = build; }

  /* Give every figure more methods: extend(function (lab) { lab.method = ... }). */
  function extend(add) { extensions.push(add); }

  /* An element with attributes and children, which are elements or texts. */
  function element(tag, attributes, children) {
    const made = document.createElement(tag);
    Object.keys(attributes || {}).forEach((key) => {
      if (attributes[key] !== undefined) made.setAttribute(key, attributes[key]);
    });
    [].concat(children === undefined ? [] : children).forEach((child) => { made.append(child); });
    return made;
  }

  /* A function that runs `act` once, when `wait` milliseconds went by without another call. */
  function later(act, wait) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, wait);
    };
  }

  // ------------------------------------------------------- the state in the address
  // #lab-mask?open=3&words=we drink tea/lab-heads?head=2: the figure that was touched last stands first.

  function readAddress(hash) {
    const found = {};
    hash.replace(/^#/, "").split("/").forEach((part) => {
      const match = /^lab-([a-z][a-z0-9_]*)\?(.*)$/.exec(part);
      if (!match) return;
      found[match[1]] = {};
      match[2].split("&").filter(Boolean).forEach((pair) => {
        const at = pair.indexOf("=");
        try {
          found[match[1]][pair.slice(0, at)] = decodeURIComponent(pair.slice(at + 1));
        } catch (_error) { /* a mangled address */ }
      });
    });
    return found;
  }

  function asText(value) {
    if (Array.isArray(value)) return value.map(asText).join(",");
    if (typeof value === "boolean") return value ? "1" : "0";
    return typeof value === "number" ? String(+value.toFixed(6)) : value;
  }

  /* A text of the address as a value of the kind that stands there at the beginning; undefined when it is none. */
  function asValue(text, like) {
    if (typeof like === "string") return [...text].slice(0, 140).join(""); // no half of a letter
    if (typeof like === "boolean") return text === "1" ? true : text === "0" ? false : undefined;
    const numbers = text === "" ? [] : text.split(",").map(Number);
    if (!numbers.every(Number.isFinite)) return undefined;
    return Array.isArray(like) ? numbers : numbers.length === 1 ? numbers[0] : undefined;
  }

  /* The part of the address that says how this figure differs from its beginning; "" when it does not. */
  function written(lab) {
    const pairs = Object.keys(lab.defaults).filter((key) => asText(lab.state[key]) !== asText(lab.defaults[key])).map((key) => `${key}=${encodeURIComponent(asText(lab.state[key])).replace(/%2C/g, ",")}`);
    return pairs.length ? `lab-${lab.name}?${pairs.join("&")}` : "";
  }

  let touched = null;
  const writeAddress = later(() => {
    const labs = Object.values(running).sort((a, b) => (b === touched) - (a === touched));
    const unseen = location.hash.slice(1).split("/").filter((part) => { // figures that have not begun yet
      const match = /^lab-(\w+)\?/.exec(part);
      return match && !running[match[1]];
    });
    const hash = labs.map(written).filter(Boolean).concat(unseen).join("/");
    if (!hash && !/^#lab-\w+\?/.test(location.hash)) return; // the page's own anchors stay
    const place = location.pathname + location.search + (hash ? `#${hash}` : "");
    try { history.replaceState(history.state, "", place); } catch (_error) { /* a browser that counts the calls */ }
  }, QUIET);

  addEventListener("hashchange", () => {
    const found = readAddress(location.hash);
    Object.keys(found).forEach((name) => {
      if (running[name]) running[name].adopt(found[name]);
    });
  });

  // ------------------------------------------------------- one figure

  function start(name, stage, data, figure) {
    if (!kinds[name]) throw new Error(`${name}.js defines no figure of this name`);
    const lab = {name, stage, data, figure, defaults: {}, state: {}, bound: [], pictures: []};
    let lit = [];
    const caption = figure.querySelector("figcaption"), said = element("p", {class: "abe-said", role: "status"});
    let update = null, mend = null, sentence = caption.textContent;
    lab.still = sentence; // what the still picture says, which is what is printed
    addEventListener("beforeprint", () => { caption.textContent = lab.still; });
    addEventListener("afterprint", () => { caption.textContent = sentence; });
    const readOut = later(() => { if (said.textContent !== sentence) said.textContent = sentence; }, QUIET);

    function fill(texts) {
      lab.state = Object.assign({}, lab.defaults);
      Object.keys(texts || {}).forEach((key) => {
        const value = key in lab.defaults ? asValue(texts[key], lab.defaults[key]) : undefined;
        if (value !== undefined) lab.state[key] = value;
      });
    }

    function refresh(key) {
      if (mend) mend(lab.state);
      lit.forEach((one) => { one.classList.remove("abe-lit"); });
      lit = [];
      lab.bound.forEach((show) => { show(lab.state); });
      lab.say(update(lab.state, key));
      lab.pictures.forEach((redraw) => { redraw(); });
    }

    function changed(key) {
      touched = lab;
      if (!update) return;
      refresh(key);
      readOut();
      writeAddress();
    }

    /* Say in which state the figure begins. repair(state) brings what an address may hold within bounds. */
    lab.begin = (defaults, repair) => {
      lab.defaults = defaults;
      mend = repair;
      fill(readAddress(location.hash)[name]);
      if (mend) mend(lab.state);
    };

    /* Change the state: controls, numbers, pictures and the sentence follow. */
    lab.set = (changes) => {
      Object.assign(lab.state, changes);
      changed(Object.keys(changes)[0]);
    };

    /* Show and say again, for what is no part of the state, such as what is pointed at. */
    lab.refresh = () => { refresh(null); readOut(); };

    lab.adopt = (texts) => { fill(texts); changed(null); };
    lab.reset = () => { lab.adopt({}); };
    lab.link = () => `${location.href.split("#")[0]}#${written(lab) || `lab-${name}`}`;

    /* The sentence below the figure; a change of it is read out when the hand rests. */
    lab.say = (text) => {
      sentence = text;
      caption.textContent = text;
    };

    /* Write a text into an element; it lights up until the next change when another one stood there. Nothing is no text. */
    lab.write = (target, text) => {
      if (target.textContent === text) return;
      if (lab.ready && target.textContent && text) {
        target.classList.add("abe-lit");
        lit.push(target);
      }
      target.textContent = text;
    };

    /* Numbers for the tests: data-weights="[[0.5,...". */
    lab.numbers = (named) => {
      Object.keys(named).forEach((key) => {
        stage.setAttribute(`data-${key}`, JSON.stringify(named[key], (_, value) => typeof value === "number" ? +value.toPrecision(8) : value));
      });
    };

    /* The last call of a figure: follow(state, key) computes, shows and returns the sentence; key is what changed. */
    lab.run = (follow) => {
      update = follow;
      refresh(null);
      lab.ready = true;
      const copy = element("button", {type: "button", class: "abe-button"}, "Copy link");
      const again = element("button", {type: "button", class: "abe-button"}, "Reset");
      copy.addEventListener("click", () => { copyText(lab.link(), copy); });
      again.addEventListener("click", () => { lab.reset(); });
      stage.append(element("div", {class: "abe-foot"}, [again, copy]), said);
    };

    extensions.forEach((add) => { add(lab); });
    const built = kinds[name](lab);
    running[name] = lab;
    figure.lab = lab;
    return built;
  }

  function copyText(text, button) {
    function done(worked) {
      button.textContent = worked ? "Link copied" : "The link is in the address bar";
      button.addEventListener("blur", () => { button.textContent = "Copy link"; }, {once: true});
    }
    function byHand() { // from a folder there is no navigator.clipboard
      const field = element("textarea", {class: "abe-said"});
      field.value = text;
      button.after(field);
      field.select();
      const worked = document.execCommand("copy");
      field.remove();
      button.focus();
      done(worked);
    }
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => { done(true); }, byHand);
    else byHand();
  }

  return {define, extend, start, element, later, readAddress};
})();
