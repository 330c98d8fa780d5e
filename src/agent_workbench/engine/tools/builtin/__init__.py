"""Built-in tools for the model; each module defines one as `TOOL`."""
