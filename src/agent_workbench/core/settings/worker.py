"""Settings of workers."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.text.amounts import time_seconds

MOST_JOBS = 16
"""Tasks that one worker may do at the same time."""


class ParkedEnd(StrEnum):
    """Fate of a parked proposal that nobody decided in time. None of them approves anything."""

    KEEP = "keep"
    REJECT = "reject"


class WorkerSettings(Struct, frozen=True):
    """Time that a proposal of an unattended session waits for a person, and what happens `then`; empty: no end.

    `jobs` is how many tasks a worker does at the same time. The rest counts for workers that share a database: `name`
    (empty: the machine's) and `tags` say what this machine is. Below `pause_below_percent` of the capacity of all
    workers nothing new begins; `poll_seconds` is the time between two looks.
    """

    park_for: str = ""
    then: ParkedEnd = ParkedEnd.KEEP
    jobs: int = 1
    name: str = ""
    tags: tuple[str, ...] = ()
    pause_below_percent: float = 20.0
    poll_seconds: float = 10.0

    @property
    def park_seconds(self) -> int | None:
        """The time in seconds, None for no end."""
        return time_seconds(self.park_for)
