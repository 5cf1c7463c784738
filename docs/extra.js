// Names that the theme leaves out: of the search, and of what lies beside each block of code.
const give = (element, label) => {
  if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
};
const name = () => {
  document.querySelectorAll(".md-search").forEach((search) => give(search, "Search"));
  document.querySelectorAll(".md-code__nav").forEach((nav, number) =>
    give(nav, `Code block ${number + 1}`),
  );
};
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();
