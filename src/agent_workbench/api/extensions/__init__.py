"""Skills, tool servers and hooks of a repository."""
