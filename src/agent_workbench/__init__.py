"""Agent Workbench: a local language model works on a git repository, and a person approves every step."""

__version__ = "0.1.0"
