"""Sessions on disk: append-only journals chained by hashes, the blobs beside them, and their locks."""
