"""Base of the values that a journal holds: events, and what stands in their fields."""

from msgspec import Struct


class RecordedValue(Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen value that is written to a journal and read back; a field that it does not have is refused."""
