"""Backlog of the copies that other machines read: how far they are behind the journals of this one."""

from collections.abc import Iterable

from msgspec import Struct


class Backlog(Struct, frozen=True):
    """Events of this machine's journals that the database does not have.

    `seconds` is the age of the oldest of them, `cause` why they were not copied (empty: they are being copied).
    """

    lines: int = 0
    seconds: float = 0.0
    cause: str = ""

    @property
    def text(self) -> str:
        """The backlog in words, empty if there is none that a person has to know of."""
        if not self.lines or not (self.cause or self.seconds >= 1):
            return ""
        why = f": {self.cause}" if self.cause else ""
        return f"{self.lines} {'event' if self.lines == 1 else 'events'} not copied for {self.seconds:.0f} s{why}"


def summed(backlogs: Iterable[Backlog]) -> Backlog:
    """Return the backlog of several sessions as one, with the cause of the oldest."""
    found = sorted((each for each in backlogs if each.lines), key=lambda each: -each.seconds)
    if not found:
        return Backlog()
    cause = next((each.cause for each in found if each.cause), "")
    return Backlog(sum(each.lines for each in found), found[0].seconds, cause)
