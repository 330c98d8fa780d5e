"""Commands of git, and the objects, refs and commits they read and write; no configured program runs."""
