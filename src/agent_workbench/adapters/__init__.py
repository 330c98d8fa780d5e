"""The things outside, one folder for each, behind the ports of core."""
