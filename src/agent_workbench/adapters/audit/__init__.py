"""Index of the audit in SQLite, built from the journals."""
