"""The queue in a folder, and what workers keep on the disk."""
