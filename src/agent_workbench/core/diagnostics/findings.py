"""Findings of an examination of the machine and the repo."""

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """State of an examined part."""

    GOOD = "ok"
    WARNING = "warn"
    BAD = "fail"


class Finding(Struct, frozen=True):
    """One finding: the part, its state, what was seen, and what to do (empty if it is good)."""

    part: str
    health: Health
    seen: str
    advice: str = ""
