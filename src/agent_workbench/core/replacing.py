"""`dataclasses.replace` in a tenth of its time, for values of many fields that are replaced at every event."""

from typing import TYPE_CHECKING

__all__ = ["replace"]

if TYPE_CHECKING:
    # What is given to it is checked as it is for the original.
    from dataclasses import replace
else:

    def replace(value, /, **changes):
        """Return the frozen dataclass, which has no `slots` and no `__post_init__`, with other values in some fields.

        Raises `TypeError` for a field that it does not have.
        """
        fields = value.__dict__
        if not fields.keys() >= changes.keys():
            raise TypeError(f"{type(value).__name__} has no field {min(changes.keys() - fields.keys())!r}")
        made = object.__new__(type(value))
        made.__dict__.update(fields)
        made.__dict__.update(changes)
        return made
