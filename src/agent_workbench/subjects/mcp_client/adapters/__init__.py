"""Client of the Model Context Protocol, in a process of its own."""
