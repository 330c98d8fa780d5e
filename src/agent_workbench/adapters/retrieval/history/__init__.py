"""What the past of a repo says of its files."""
