// The keyboard belongs to the terminal from the beginning, not only after a click.
new MutationObserver((_, watching) => {
  const input = document.querySelector(".xterm-helper-textarea");
  if (input) {
    input.focus();
    watching.disconnect();
  }
}).observe(document, { childList: true, subtree: true });

// How large a cell is shows only once it is drawn anew; the rows were counted before that, and the last ones, where the
// gate is, would be below the window's edge.
let again = 0;
addEventListener("resize", (event) => {
  if (event.isTrusted) {
    clearTimeout(again);
    again = setTimeout(() => dispatchEvent(new Event("resize")), 200);
  }
});
