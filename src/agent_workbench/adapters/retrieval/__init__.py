"""The pieces of code that fit a task: chunked, indexed, searched."""
