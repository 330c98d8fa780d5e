"""Tasks of the plan in the queue: dispatch of what a person approved, progress, and cancellation."""
