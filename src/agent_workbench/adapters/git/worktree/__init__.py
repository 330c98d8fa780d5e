"""The worktree of a task: its folder, files, checkpoints and commit."""
