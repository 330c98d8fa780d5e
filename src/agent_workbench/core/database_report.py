"""State of the shared database as `agent database check` reports it."""

from msgspec import Struct

from agent_workbench.core.backlog import Backlog

MOST_SECONDS_APART = 5.0
"""Difference of two clocks above which times of two machines cannot be compared."""


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
