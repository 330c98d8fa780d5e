// The keyboard belongs to the terminal from the beginning, not only after a click.
new MutationObserver((_, watching) => {
  const input = document.querySelector(".xterm-helper-textarea");
  if (input) {
    input.focus();
    watching.disconnect();
  }
}).observe(document, { childList: true, subtree: true });
