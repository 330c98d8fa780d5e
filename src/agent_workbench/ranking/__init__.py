"""Tokens and BM25 over any documents."""
