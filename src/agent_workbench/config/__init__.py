"""Settings from file, environment and flags, and the user's trust in what a repo sets."""
