"""Base class of the values in a journal: events and the values of their fields."""

from msgspec import Struct


class RecordedValue(Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen value that is written to a journal and read back; a field that it does not have is refused."""
