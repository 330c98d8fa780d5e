"""Tools: what the model may call, what the workbench itself proposes, and what a source such as a server brings."""
