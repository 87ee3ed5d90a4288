// Says above a table that is wider than the page that it scrolls.
(function () {
  "use strict";
  function check(box) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.previousElementSibling.classList.toggle("needed", wide);
    if (wide) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }

  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => check(entry.target)));
  for (const box of document.querySelectorAll(".table")) {
    const hint = document.createElement("p");
    hint.className = "scroll-hint";
    hint.textContent = "More columns: scroll this table sideways \u2192";
    box.before(hint);
    sizes.observe(box);
  }
})();
