"""Division of source files into chunks, at the definitions that tree-sitter finds, and a cache of the result."""
