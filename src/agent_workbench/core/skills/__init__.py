"""Skills: their entries in the catalogue, and the choice of those that a task's prompts contain."""
