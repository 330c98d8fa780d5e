"""Playbooks of Ansible: search among the files of a repository, and runs in the environment of the bundled skill."""
