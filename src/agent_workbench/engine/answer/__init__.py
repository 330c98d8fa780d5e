"""The model's answer: the request, the stream, the grammar it must keep, and how a step is read from it."""
