"""The session's log on disk: append-only lines and the blobs beside them."""
