"""Playbooks of Ansible: search, and runs of which a person approves each."""
