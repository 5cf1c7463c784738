// Names that the theme leaves out: of the search, and of what lies beside each block of code.
// A table that is wider than its page scrolls, with the keys of a keyboard too.
const give = (element, label) => {
  if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
};
const name = () => {
  document.querySelectorAll(".md-search").forEach((search) => give(search, "Search"));
  document.querySelectorAll(".md-code__nav").forEach((nav, number) =>
    give(nav, `Code block ${number + 1}`),
  );
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap, number) => {
    if (wrap.scrollWidth <= wrap.clientWidth || wrap.tabIndex === 0) return;
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "group");
    give(wrap, `Table ${number + 1}`);
  });
};
window.addEventListener("resize", () => name());
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();
