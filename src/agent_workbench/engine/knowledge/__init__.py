"""Knowledge for a task: notes found for its words, and notes that become proposals and files."""
