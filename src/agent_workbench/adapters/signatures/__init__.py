"""Signatures by `ssh-keygen -Y`: this machine's key, and the file of allowed signers."""
