"""What developers of the workbench run by hand, and the model that its tests and demo are served by."""
