"""Facts about a repository and its code: worktrees, files, the map, and the code search."""
