"""Worker processes of this package: start, requests over pipes, end."""
