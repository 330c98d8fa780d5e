"""What an examination of the machine and the repo finds."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How a part is."""

    GOOD = "ok"
    WARNING = "warn"
    BAD = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: the part, how it is, what was seen, and what to do (empty when it is good)."""

    part: str
    health: Health
    seen: str
    advice: str = ""
