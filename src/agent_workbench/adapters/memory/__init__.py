"""Knowledge and scratchpads kept as markdown."""
