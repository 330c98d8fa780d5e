"""YAML documents as nodes with positions: strict composition, conversion to typed values, edits that keep the rest."""
