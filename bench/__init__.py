"""What the workbench costs, measured: `python -m bench`, or `make bench`."""
