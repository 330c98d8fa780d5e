"""The machine under a worker: its load, cores and memory, and its GPUs."""
