"""Language servers that are installed; pygls speaks with each in a process of its own."""
