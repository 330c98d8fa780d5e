"""Diffs of real commits, damaged as models, editors and mail programs damage them."""
