"""Files as vectors: what is alike in meaning though no word is shared."""
