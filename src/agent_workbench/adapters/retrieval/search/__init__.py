"""Answers to one query: features of each file, their weighted sum, the chunks shown and the reasons for them."""
