"""The user's own checkout and earlier trees: looked at, searched, and merged into on request."""
