"""Rules in files: the repo's settings and the user's own, changed in place."""
