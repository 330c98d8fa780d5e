"""The settings, loaded from file, environment and flags into the types of core."""
