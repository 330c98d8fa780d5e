"""Diffs: read into a patch, placed in files, applied, selected by hunk, and rendered again.

One pipeline serves the model's answer, the user's edit and the hunk choice. `patch_reader` parses a text and
reports its repairs. `fit` finds the position of each hunk, and `application` makes the new contents. `comparison` makes
the patch of the result. `selection` leaves out hunks or lines, and `diff_text` renders. `diff_grammar` constrains the
answers of a model to diffs that fit the files.
"""
