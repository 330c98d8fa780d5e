"""Tools that the workbench brings for the model: each module holds one as `TOOL`."""
