"""Code search, and its evaluation."""
