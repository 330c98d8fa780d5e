"""Code search: files are divided into chunks, indexed, and ranked for a query."""
