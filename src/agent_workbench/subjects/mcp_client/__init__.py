"""Tool servers of the Model Context Protocol: their tools, for the model."""
