"""What any adapter needs of the machine: processes, atomic files, locks, paths."""
