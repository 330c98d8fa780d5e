"""The things outside, behind the ports of core: a folder for each, or modules whose names share the first word."""
