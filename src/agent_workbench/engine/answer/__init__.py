"""The model's answer: request, streaming, GBNF grammar, and parser of the step in it."""
