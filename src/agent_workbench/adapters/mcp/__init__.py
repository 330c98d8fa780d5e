"""MCP servers as sources of tools; the official SDK speaks with each in a process of its own."""
