"""Trust in a repository: the question, the answer on record, and what counts without it."""
