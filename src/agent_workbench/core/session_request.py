"""Request for a session: how the workbench and the session are started; and its end, with the exit code."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.ids import TaskId
from agent_workbench.core.proposals import USER


class OpenMode(StrEnum):
    """The ways to open a session.

    `RESUME` takes up the session that is named; without a name the newest unfinished one, or begins a new one if there
    is none. `NEW` always begins one. `FORK` begins one that goes on from event `at` of the named session. `REPLAY`
    shows a recording; nothing runs and nothing is decided. `FOLLOW` shows a session that another process works on, or
    that nobody has open: its proposals are decided through the inbox, and it is never locked.
    """

    RESUME = "resume"
    NEW = "new"
    FORK = "fork"
    REPLAY = "replay"
    FOLLOW = "follow"


class Unattended(Struct, frozen=True):
    """A run under the policy with nobody to ask: these tasks in order, all that are ready when None."""

    tasks: tuple[TaskId, ...] | None = None


class SessionRequest(Struct, frozen=True):
    """A session to open.

    `session` is its name; the first or last letters are enough. `at` is the number of the event to fork after or to
    show first (None: the last to fork, the first to show). An attended session asks its user, an `unattended` one
    stops where somebody is needed. `words` are entered in the input line of an attended one when it is open. Without
    the `preflight` nobody is asked about set-up and trust: nothing is set up, and what is not trusted does not count.
    A `chat` works on no task: a new session becomes one, and one that is resumed has to be one. If it is `unattended`,
    calls that ask for approval are rejected. A new session gets the id `session`, if one is given. `person` is the `by`
    of the decisions made in it.
    """

    mode: OpenMode = OpenMode.RESUME
    session: str = ""
    at: int | None = None
    unattended: Unattended | None = None
    words: str = ""
    preflight: bool = True
    chat: bool = False
    person: str = USER

    @property
    def replayed(self) -> bool:
        """True if a recording is asked for."""
        return self.mode is OpenMode.REPLAY

    @property
    def followed(self) -> bool:
        """True if a session is to be followed."""
        return self.mode is OpenMode.FOLLOW


class Invocation(Struct, frozen=True):
    """Folder, environment and flags; `flags` are settings by dotted key and count more than those of files.

    `policy` is a file with approvals and limits. `unconfined`: an unattended run goes on where no sandbox holds.
    `demo`: the model's answers come from the demo's script, at `demo_tokens_per_second` (0: at once).
    """

    folder: Path
    environ: Mapping[str, str]
    flags: Mapping[str, str]
    policy: Path | None = None
    unconfined: bool = False
    demo: bool = False
    demo_tokens_per_second: float = 0.0


class TaskOutcomeKind(StrEnum):
    """Result of an unattended run for one task; the order is that of the final sentence.

    `BLOCKED`: it could not begin. `HELD`: another process works on it. `WAITING`: it depends on one that is not done.
    """

    FAILED = "failed"
    BLOCKED = "blocked"
    PARKED = "parked"
    HELD = "held"
    WAITING = "waiting"
    DONE = "done"


class TaskOutcome(Struct, frozen=True):
    """Outcome of one task and one line of why; `commit` is on its branch, and can be merged."""

    task: TaskId
    outcome: TaskOutcomeKind
    reason: str
    commit: str = ""


class SessionEnd(Struct, frozen=True):
    """End of a session: exit code, one line of why, and the outcome of each task an unattended run came to."""

    exit_code: ExitCode = ExitCode.DONE
    reason: str = ""
    outcomes: tuple[TaskOutcome, ...] = ()
