"""Built-in tools for the model; each module lists its own as `TOOLS`."""
