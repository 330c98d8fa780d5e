"""Git: worktrees, checkpoints, commits and merges in the user's repository."""
