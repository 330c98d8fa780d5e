"""Model files of a hub, in the folder of models."""
