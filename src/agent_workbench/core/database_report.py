"""State of the shared database and of the copies in it, as `agent database check` reports them."""

from collections.abc import Iterable

from msgspec import Struct

MOST_SECONDS_APART = 5.0
"""Difference of two clocks above which times of two machines cannot be compared."""


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


class DatabaseReport(Struct, frozen=True):
    """The shared database, as this machine sees it. `place` has neither user nor password.

    `clock_seconds` is how far this machine's clock is ahead of the server's. `worker_line` and `person_line` are what
    other machines add to their `allowed_signers` so that this one counts there. `has_signers` is False if this machine
    has no such file. `uncounted` are tasks of the queue
    that do not count, each with the reason; `problems` is everything else that is wrong.
    """

    place: str
    reachable: bool = False
    server: str = ""
    schema: tuple[str, ...] = ()
    milliseconds: float = 0.0
    clock_seconds: float = 0.0
    backlog: Backlog = Backlog()
    remote: str = ""
    worker_line: str = ""
    person_line: str = ""
    allowed_signers: str = ""
    has_signers: bool = False
    tasks: int = 0
    uncounted: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
