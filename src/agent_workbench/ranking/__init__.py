"""Tokens and BM25 scores of documents: numpy for the large index of code, rank-bm25 for small collections."""
