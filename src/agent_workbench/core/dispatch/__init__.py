"""Tasks of a plan in the queue: what a dispatch would queue, how the tasks stand, and the port of both."""
