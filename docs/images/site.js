// The theme leaves the search unnamed, makes landmarks of copy buttons and headings, and keeps keys from wide tables.
const mend = () => {
  for (const part of document.querySelectorAll("[role=dialog]")) part.ariaLabel = "Search";
  for (const part of document.querySelectorAll(".md-code__nav, .md-nav--secondary .md-nav[aria-label]")) {
    part.role = "presentation";
    part.removeAttribute("aria-label");
  }
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap")) part.tabIndex = 0;
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
