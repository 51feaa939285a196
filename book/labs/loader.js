/* Turns each figure[data-lab] of a page into a live one when it comes into view.

   NAME.js fills the stage. Where it is missing or fails, the still picture stays. Classic scripts, so that it works
   from a folder too. */

(() => {
  "use strict";

  var root = document.documentElement.dataset.content_root;
  var loading = {};
  var COMMON = ["common", "numbers", "controls", "drawing"]; // in this order
  var NEEDS = {ask: ["words"]}; // what a figure stands on besides

  /* Load a script of book/labs once, such as "mask" or "heads/contents"; a promise. */
  function load(name) {
    loading[name] = loading[name] || new Promise((done, fail) => {
      var tag = document.createElement("script");
      tag.async = false; // they run in the order of the calls
      tag.src = `${root}_static/labs/${name}.js`;
      tag.onload = done;
      tag.onerror = () => { fail(new Error(`${tag.src} is not there`)); };
      document.head.appendChild(tag);
    });
    return loading[name];
  }

  function start(figure) {
    var stage = figure.querySelector(".abe-stage"), caption = figure.querySelector("figcaption"), still = caption.textContent;
    Promise.all(COMMON.concat(NEEDS[figure.dataset.lab] || [], figure.dataset.lab).map(load)).then(() => {
      var data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
      stage.hidden = false; // so that it has a width
      return window.abeLabs.start(figure.dataset.lab, stage, data, figure);
    }).then(() => {
      figure.classList.add("abe-live");
      if (figure === linked()) follow(); // it has another height now
    }).catch((error) => {
      stage.hidden = true;
      caption.textContent = still;
      console.error(`${figure.id}: the still picture stays. ${error.message}`);
    });
  }

  // #lab-mask?words=... is no element of the page, so that the browser stays where it is: the first figure is meant.
  function linked() {
    var name = /^#(lab-\w+)\?/.exec(location.hash);
    return name && document.getElementById(name[1]);
  }
  function follow() { if (linked()) linked().scrollIntoView(); }

  window.abeLoad = load;
  if (root === undefined || !("IntersectionObserver" in window)) return;
  var seen = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      seen.unobserve(entry.target);
      start(entry.target);
    });
  }, {rootMargin: "200px"});
  document.querySelectorAll("figure[data-lab]").forEach((figure) => { seen.observe(figure); });
  addEventListener("hashchange", follow);
  follow();
})();
