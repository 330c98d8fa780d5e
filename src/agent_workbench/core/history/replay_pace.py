"""Replay of a session: its pace, and its prompts built again and compared with their records."""

from datetime import datetime

from msgspec import Struct

from agent_workbench.core.events import PromptBuilt

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)
MIN_SECONDS = 0.1
MAX_SECONDS = 2.0


def faster(speed: float) -> float:
    """Return the next higher speed, or the highest."""
    return next((each for each in SPEEDS if each > speed), SPEEDS[-1])


def slower(speed: float) -> float:
    """Return the next lower speed, or the lowest."""
    return next((each for each in reversed(SPEEDS) if each < speed), SPEEDS[0])


def wait_seconds(before: str, after: str, speed: float) -> float:
    """Return the seconds between two events of a replay; `before` and `after` are ISO 8601 times."""
    return min(max(_apart(before, after), MIN_SECONDS), MAX_SECONDS) / speed


def _apart(before: str, after: str) -> float:
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):  # a journal may hold any text as its time, with or without a zone
        return 0.0


class PromptDifference(Struct, frozen=True):
    """First difference between a rebuilt prompt and its record: the subject, the part, and a short diff."""

    what: str
    part: str = ""
    diff: str = ""


class ReproducedPrompt(Struct, frozen=True):
    """Rebuilt prompt `number` of a session, counted from 1; `seq` is the event of its record.

    `compared` is False where the record holds nothing to compare with. `remark` is a further note for the reader.
    """

    number: int
    seq: int
    built: PromptBuilt
    difference: PromptDifference | None = None
    compared: bool = True
    remark: str = ""
