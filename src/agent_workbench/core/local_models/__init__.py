"""Models of this machine: files and servers that were found, and how a file is served."""
