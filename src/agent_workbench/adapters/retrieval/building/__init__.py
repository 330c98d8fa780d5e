"""The index of a folder brought up to date in the background."""
