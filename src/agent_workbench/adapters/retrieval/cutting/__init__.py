"""Files cut into pieces, and pieces kept by content."""
