"""Git commands, and the objects, refs and commits they read and write. No program that a repository configures runs."""
