"""What an examination of the machine and the repo finds."""

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """How a part is."""

    GOOD = "ok"
    WARNING = "warn"
    BAD = "fail"


class Finding(Struct, frozen=True):
    """One line: the part, how it is, what was seen, and what to do (empty when it is good)."""

    part: str
    health: Health
    seen: str
    advice: str = ""
