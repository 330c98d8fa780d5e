"""Access to the machine for adapters and config: processes, atomic files, locks, user folders."""
