// The theme puts a landmark beside each block of code: each needs a name of its own.
const name = () =>
  document.querySelectorAll(".md-code__nav").forEach((nav, number) => {
    const label = `Code block ${number + 1}`;
    if (nav.getAttribute("aria-label") !== label) nav.setAttribute("aria-label", label);
  });
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();
