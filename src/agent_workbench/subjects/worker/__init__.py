"""The unattended worker: it claims tasks of the queue, does and reports them."""
