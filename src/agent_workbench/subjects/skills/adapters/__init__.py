"""Skills in folders, and their scripts in environments of their own."""
