"""Updates of a folder's index: changed files are found, chunked in worker processes, merged and saved."""
