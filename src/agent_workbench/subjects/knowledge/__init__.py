"""Notes that outlive a task."""
