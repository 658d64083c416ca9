"use strict";
(() => {
  const field = document.getElementById("find");
  const told = document.getElementById("found");
  const lines = Array.from(document.querySelectorAll(".l"));
  const parts = Array.from(document.querySelectorAll(".pane, #events, details"));
  const folds = Array.from(document.querySelectorAll(".pane details.whole"));
  const texts = lines.map((line) => line.textContent.toLowerCase());
  let waiting = 0;
  // Where the words stand in the lines that are shown; more than this many nobody looks at one by one.
  const most = 2000;
  const mark = (line, wanted, ranges) => {
    const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node !== null && ranges.length < most; node = walk.nextNode()) {
      const text = node.data.toLowerCase();
      for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, Math.min(at, node.length));
        range.setEnd(node, Math.min(at + wanted.length, node.length));
        ranges.push(range);
      }
    }
  };
  const filter = () => {
    const wanted = field.value.toLowerCase();
    const ranges = [];
    let found = 0;
    for (let i = 0; i < lines.length; i += 1) {
      const here = wanted === "" || texts[i].includes(wanted);
      lines[i].classList.toggle("gone", !here);
      if (here && wanted !== "") {
        found += 1;
        for (let fold = lines[i].closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
        mark(lines[i], wanted, ranges);
      }
    }
    // What was found in a fold stands below the line that it belongs to.
    for (const fold of wanted === "" ? [] : folds) {
      const head = fold.previousElementSibling;
      if (head !== null && head.matches(".l") && fold.querySelector(".l:not(.gone)") !== null) head.classList.remove("gone");
    }
    for (const part of parts) {
      part.classList.toggle("gone", wanted !== "" && part.querySelector(".l:not(.gone)") === null);
    }
    if (window.CSS && CSS.highlights) CSS.highlights.set("found", new Highlight(...ranges));
    told.textContent = wanted === "" ? "" : found === 1 ? "1 line" : found + " lines";
  };
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape" && field.value !== "") {
      field.value = "";
      filter();
    }
  });
  document.documentElement.dataset.ready = "yes";
})();
