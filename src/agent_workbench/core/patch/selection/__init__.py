"""Selection of hunks: what the user takes of a diff, and what is left of it."""
