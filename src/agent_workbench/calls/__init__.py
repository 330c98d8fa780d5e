"""What can be asked of the workbench, as calls: the verbs of the command and Python programs use the same."""
