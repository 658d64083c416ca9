"use strict";
(() => {
  const field = document.getElementById("find");
  const told = document.getElementById("found");
  const lines = Array.from(document.querySelectorAll(".l"));
  const parts = Array.from(document.querySelectorAll(".pane, #events"));
  const texts = lines.map((line) => line.textContent.toLowerCase());
  let waiting = 0;
  const filter = () => {
    const wanted = field.value.toLowerCase();
    let found = 0;
    for (let i = 0; i < lines.length; i += 1) {
      const here = wanted === "" || texts[i].includes(wanted);
      lines[i].classList.toggle("gone", !here);
      if (here && wanted !== "") {
        found += 1;
        const fold = lines[i].closest("details");
        if (fold) fold.open = true;
      }
    }
    for (const part of parts) {
      part.classList.toggle("gone", wanted !== "" && part.querySelector(".l:not(.gone)") === null);
    }
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
