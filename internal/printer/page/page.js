"use strict";
// Everything can be read without this: it folds, unfolds, filters and copies.
(() => {
  const folds = () => document.querySelectorAll(".tree details");
  const open = (which) => folds().forEach((d) => { d.open = which === "all" || (which === "wrong" && d.parentElement.classList.contains("wrong")); });
  document.querySelectorAll(".tools").forEach((t) => { t.hidden = false; });
  document.querySelectorAll("[data-open]").forEach((b) => b.addEventListener("click", () => open(b.dataset.open)));
  document.getElementById("only-wrong")?.addEventListener("change", (e) => document.body.classList.toggle("only-wrong", e.target.checked));
  const copy = (b) => navigator.clipboard.writeText(b.previousElementSibling.textContent).then(() => { b.textContent = "Copied"; }, () => { b.hidden = true; });
  document.querySelectorAll(".copy").forEach((b) => {
    b.hidden = !navigator.clipboard;
    b.addEventListener("click", () => copy(b));
  });
  // What a link leads to must not be folded away.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let e = target && target.parentElement; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
    }
    if (target) target.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", () => open("all"));
})();
