"""Skills: instructions and scripts that a task or its words name."""
