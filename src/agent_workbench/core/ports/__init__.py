"""Ports: protocols of everything that the core needs from outside, named by role."""
