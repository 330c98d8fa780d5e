"""Front end for clients of the Model Context Protocol: it lists, shows and starts, and never decides."""
