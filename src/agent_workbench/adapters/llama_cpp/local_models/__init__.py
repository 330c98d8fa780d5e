"""Search for models of this machine: headers of GGUF files, folders of models, and servers that run."""
