"""Access to the files below one folder that a command may have changed in any way. Links are never followed."""
