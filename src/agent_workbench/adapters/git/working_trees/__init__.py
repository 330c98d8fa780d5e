"""Working trees: the worktree of a task with its checkpoints, and the user's own checkout, changed by a merge alone."""
