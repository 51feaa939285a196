/* Lets a reader answer the questions of a chapter, and keeps the answers in the browser, for this reader only.

   book/_ext/questions.py marks them in the page: p.abe-predict with span.abe-option, answered by p.abe-told further
   down, and p.abe-check, followed by details.abe-folded. What stands in the page stays there for print; on the screen
   a form takes its place. Runs before MathJax, which then sets what was copied, too. */

(() => {
  "use strict";

  const STORE = "abe-answers";

  function element(tag, attributes, children) {
    const made = document.createElement(tag);
    Object.entries(attributes || {}).forEach(([key, value]) => { made.setAttribute(key, value); });
    made.append(...[].concat(children || []));
    return made;
  }

  // ------------------------------------------------------- what is kept

  function stored() {
    try {
      const kept = JSON.parse(localStorage.getItem(STORE));
      return Object.fromEntries(Object.entries(kept || {}).filter(([_, one]) => /^[a-z]$/.test(one?.pick) && Array.isArray(one.tried || [])));
    } catch (_error) {
      return {}; // no storage, or not ours
    }
  }

  let kept = stored();
  function all() { return kept; }

  function keep(key, value) {
    kept = {...kept, ...stored()}; // what another window wrote stays
    if (value) kept[key] = value;
    else delete kept[key];
    try {
      localStorage.setItem(STORE, JSON.stringify(kept));
    } catch (_error) { /* a browser that keeps nothing: the page works until it is closed */ }
  }

  function mark(question, prefix) { // what the build wrote: abe-key-..., abe-right-...
    return [...question.classList].find((name) => name.startsWith(prefix)).slice(prefix.length);
  }

  // ------------------------------------------------------- the form

  function copied(nodes) {
    return nodes.map((node) => node.cloneNode(true));
  }

  /* {form, pick(letter), picked(), status, button}. options: [{letter, nodes}]. */
  function makeForm(key, legend, options, buttonText, rest) {
    const inputs = options.map((one) => element("input", {type: "radio", name: `abe-${key}`, value: one.letter}));
    const labels = options.map((one, i) => element("label", {class: "abe-pick"}, [inputs[i],
      element("span", {class: "abe-letter"}, `(${one.letter})`), element("span", {class: "abe-text"}, one.nodes)]));
    const button = element("button", {type: "submit", class: "abe-commit"}, buttonText);
    const status = element("div", {class: "abe-status", role: "status"});
    const form = element("form", {class: "abe-question"}, [
      element("fieldset", {}, [element("legend", {}, legend), ...labels]), ...(rest || []),
      element("div", {class: "abe-acts"}, [button, status])]);
    return {
      form: form, button: button, status: status, inputs: inputs, labels: labels,
      pick: (letter) => { inputs.forEach((input) => { input.checked = input.value === letter; }); },
      picked: () => inputs.find((input) => input.checked)?.value
    };
  }

  /* Put the form in front of what it stands for, which is seen in print only. */
  function replace(originals, made, act) {
    originals[0].before(made.form);
    originals.forEach((one) => { one.classList.add("abe-original"); });
    made.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (made.picked()) act(made.picked());
      else made.status.textContent = "Choose an answer first.";
    });
  }

  // ------------------------------------------------------- predictions

  function predict(question) {
    const key = mark(question, "abe-key-"), right = mark(question, "abe-right-");
    const spans = [...question.querySelectorAll(".abe-option")], nodes = [...question.childNodes];
    const last = nodes.indexOf(spans[spans.length - 1]);
    const options = spans.map((span) => {
      const letter = span.querySelector(".abe-letter");
      return {letter: letter.textContent[1], nodes: copied([...span.childNodes].filter((node) => node !== letter))};
    });
    const further = nodes.slice(last + 1);
    const asks = further.some((node) => /\w/.test(node.textContent)) ? [element("p", {}, copied(further))] : [];
    const made = makeForm(key, copied(nodes.slice(0, nodes.indexOf(spans[0]))), options, "Commit to it", asks);
    const told = document.querySelector(`.abe-told.abe-key-${key}`);
    const verdict = element("p", {class: "abe-verdict", hidden: ""});
    told.before(verdict);

    function show(state) {
      const committed = Boolean(state?.committed) && options.some((one) => one.letter === state.pick);
      if (state) made.pick(state.pick);
      made.inputs.forEach((input) => { input.disabled = committed; });
      made.form.classList.toggle("abe-committed", committed);
      made.button.textContent = committed ? "Change my prediction" : "Commit to it";
      made.status.textContent = committed ? `You predict (${state.pick}). The answer comes after the run.` : "";
      verdict.hidden = !committed;
      verdict.classList.toggle("abe-is-right", committed && state.pick === right);
      verdict.textContent = !committed ? "" : state.pick === right
        ? `✓ You were right: you predicted (${state.pick}).` : `✗ It came out otherwise: you predicted (${state.pick}).`;
    }

    replace([question], made, (letter) => {
      const state = {pick: letter, committed: !all()[key]?.committed};
      keep(key, state);
      show(state);
      if (!state.committed) made.inputs.find((input) => input.checked).focus();
    });
    made.form.addEventListener("change", () => { keep(key, {pick: made.picked(), committed: false}); });
    show(all()[key]);
    return {key: key, forget: () => { made.pick(null); show(null); }};
  }

  // ------------------------------------------------------- the self-check

  function check(question) {
    const key = mark(question, "abe-key-"), folded = [];
    for (let next = question.nextElementSibling; next?.matches("details.abe-folded"); next = next.nextElementSibling) {
      folded.push(next);
    }
    const told = {}, right = folded.find((one) => "right" in one.dataset)?.dataset.letter;
    const options = folded.map((one) => {
      const summary = one.querySelector("summary"), letter = one.dataset.letter;
      told[letter] = [...one.childNodes].filter((node) => node !== summary);
      const text = summary.cloneNode(true);
      text.innerHTML = text.innerHTML.replace(/^\s*\([a-z]\)\s*/, "");
      return {letter: letter, nodes: [...text.childNodes]};
    });
    const made = makeForm(key, copied([...question.childNodes]), options, "Check");

    function show(state) {
      const tried = (state?.tried || []).filter((letter) => letter in told);
      if (state) made.pick(state.pick);
      made.labels.forEach((label, i) => {
        const letter = options[i].letter, known = tried.includes(letter);
        label.classList.toggle("abe-is-right", known && letter === right);
        label.classList.toggle("abe-is-wrong", known && letter !== right);
      });
      made.status.replaceChildren(...tried.map((letter) => element("p", {class: letter === right ? "abe-is-right" : "abe-is-wrong"},
        [element("span", {class: "abe-letter"}, `${letter === right ? "✓" : "✗"} (${letter}) `), ...copied(told[letter])])));
    }

    replace([question, ...folded], made, (letter) => {
      const before = all()[key]?.tried || [];
      const state = {pick: letter, tried: before.filter((one) => one !== letter).concat(letter)};
      keep(key, state);
      show(state);
    });
    made.form.addEventListener("change", () => { keep(key, {pick: made.picked(), tried: all()[key]?.tried || []}); });
    show(all()[key]);
    return {key: key, forget: () => { made.pick(null); show(null); }};
  }

  const questions = [...document.querySelectorAll("p.abe-predict")].map(predict)
    .concat([...document.querySelectorAll("p.abe-check")].map(check));
  const forms = document.querySelectorAll(".abe-question");
  if (forms.length) {
    const button = element("button", {type: "button", class: "abe-forget"}, "Forget my answers on this page");
    button.addEventListener("click", () => {
      questions.forEach((one) => { keep(one.key, null); one.forget(); });
    });
    forms[forms.length - 1].after(button);
  }
})();
