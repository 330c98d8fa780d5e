"""Edits that cannot miss: which lines and names a diff may hold now, and the grammar of the diffs made of them."""
