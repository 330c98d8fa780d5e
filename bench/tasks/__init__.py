"""Comparison of coding agents on public task sets, with one model server for all of them."""
