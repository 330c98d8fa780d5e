"""Playbooks of Ansible: what a repository has, requests for a run, its recap, and the findings of a lint run."""
