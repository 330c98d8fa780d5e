"""Tools: those that the model calls, those that only the workbench calls, and external ones (MCP, skills)."""
