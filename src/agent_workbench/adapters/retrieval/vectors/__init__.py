"""Embeddings of files: an embeddings endpoint makes them, chromadb stores them in a process of its own."""
