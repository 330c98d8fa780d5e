"""llama.cpp servers that the workbench starts itself: command line, log, exit reason, and sharing between sessions."""
