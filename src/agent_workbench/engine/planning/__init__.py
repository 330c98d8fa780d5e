"""Planning with the model: what it sees of the repository, its answer, and the proposed plan at the gate."""
