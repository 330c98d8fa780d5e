"""Models on this machine: pulled, listed, removed, served and tested."""
