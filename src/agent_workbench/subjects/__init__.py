"""The subjects of the workbench: each with all that only it needs, from its adapters to its verb.

The last word of a module's name says its layer: adapter, wiring, calls, view, screen or verb. A module without
such a word is of the layer core. A subject of fewer than four modules has no folder; its name begins theirs.
"""
