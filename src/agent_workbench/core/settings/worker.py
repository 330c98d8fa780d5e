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
    """Time that parked proposals wait, tasks at the same time, and what a machine is among others."""

    park_for: str = ""
    """Time that a proposal waits for you which an unattended run parked: `30min`, `12h`, `3d`; empty: as long as you
    like.
    """
    then: ParkedEnd = ParkedEnd.KEEP
    """Fate of the proposal after that time: `keep` goes on waiting, `reject` rejects it, and the model reads that
    nobody decided in time. Nothing is ever approved this way.
    """
    jobs: int = 1
    """Tasks that `agent worker` does at the same time, 1 to 16; `--jobs` says it for one run."""
    name: str = ""
    """Name of this machine among those that share a database; empty: its host name. Yours alone: no repository may set
    it.
    """
    tags: tuple[str, ...] = ()
    """Words for the purpose of this machine; tasks ask for tags in `needs`. Yours alone."""
    pause_below_percent: float = 20.0
    """With a database: below this share of all workers' capacity nothing new begins."""
    poll_seconds: float = 10.0
    """With a database: time between two looks at what nobody reports."""

    @property
    def park_seconds(self) -> int | None:
        """The time in seconds, None for no end."""
        return time_seconds(self.park_for)
