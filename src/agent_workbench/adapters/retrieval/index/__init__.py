"""The words of pieces and files, in segments that never change."""
