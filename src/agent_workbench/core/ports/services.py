"""What the engine needs of the world, and what a front end needs of a session, as protocols named by role.

`core.workspace_ports` holds those of files, git and commands.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol

from agent_workbench.core.events import Event, Recorded, SkillText
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.intents import Intent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.plan_text import PlanPiece
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.retrieval import Chunk, CodeQuery, IndexStatus
from agent_workbench.core.rules.matching import StoredRule
from agent_workbench.core.settings import Permission


class Session(Protocol):
    """All that a front end knows: intents go in, updates come out. Live, scripted and replayed sessions have it."""

    async def submit(self, intent: Intent) -> None:
        """Take an intent; what came of it shows in the updates. One that no longer fits is dropped with a notice."""

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield the newest update whenever there is one (older ones may be passed over); ends with the session."""


class Clock(Protocol):
    """Time, so that tests and replays decide what it is."""

    def now(self) -> str:
        """Return UTC time in ISO 8601 with microseconds and `Z`."""

    def monotonic_seconds(self) -> float:
        """Return seconds that never go back."""


class Ids(Protocol):
    """Fresh names."""

    def session(self) -> SessionId:
        """Return a session id nobody has."""


class Journal(Protocol):
    """The append-only log of one session, held by one writer."""

    async def append(self, seq: int, time: str, event: Event) -> Recorded:
        """Write the event durably (flush, fsync), return it with its hash; raise `StorageError`, `JournalError`."""

    async def close(self) -> None:
        """Give the lock back."""


class Model(Protocol):
    """A server that thinks."""

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
        """Wait until who answers for `purpose` is ready and return what it says of itself; raise `ModelError`."""

    def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer, ended by `AnswerEnd`; closing the iterator frees the server.

        Raises `ModelError`; one that has `another` set says that the next `observe` finds another endpoint.
        """

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        """Return the true token count of each text for who answers for `purpose`, zeros where it cannot count."""

    async def close(self) -> None:
        """Let go of the server; one that we started ends."""


class Retriever(Protocol):
    """Finds code. What it searches is the folder's files as they are at the time of the search."""

    def prepare(self, sources: Sources) -> object:
        """Begin to index in the background, so that the first search need not."""

    def status(self, sources: Sources) -> IndexStatus:
        """Return how far the index of this folder is. Does not block."""

    async def close(self) -> None:
        """Stop what runs in the background."""

    async def search(
        self, sources: Sources, query: CodeQuery, limit: int, *, complete: bool = True
    ) -> tuple[Chunk, ...]:
        """Return the best chunks, best first; unless `complete`, of what is indexed so far, without waiting."""


class Plans(Protocol):
    """The plan's file."""

    @property
    def path(self) -> str:
        """Where the plan is, relative to the repo."""

    async def read(self) -> Plan:
        """Return the plan; raise `PlanError` with file and line."""

    async def set_status(self, task: TaskId, status: TaskStatus, reason: str = "") -> None:
        """Write one task's status, keeping everything else of the file to the byte where possible.

        The reason stands beside it while the task is blocked.
        """

    async def move(self, task: TaskId, *, up: bool) -> None:
        """Bring a task before its neighbour (or behind it); one that has none there stays."""

    async def piece(self, task: TaskId | None, *, new: bool = False) -> PlanPiece:
        """Return the text of a task (None: all of the plan, also a broken one), or a new one to be filled in behind it.

        Raises `PlanError` with file and line.
        """

    async def replace_text(self, before: str, text: str, keep: Sequence[TaskId] = ()) -> None:
        """Make the plan `text`, which `before` was edited to; what was changed on the disk meanwhile is kept as well.

        Raises `PlanError`, with nothing written, for what cannot be read (file and line as in `text`), lacks one of
        the tasks `keep`, or was changed meanwhile in the same lines.
        """

    async def add(self, tasks: Sequence[Task]) -> None:
        """Append tasks, keeping comments and order."""

    async def new_plan(self, plan: Plan) -> str:
        """Begin a new plan; return where the former one was archived, empty where there was none."""


class Memory(Protocol):
    """Scratchpads."""

    def path(self, task: TaskId, fork: str = "") -> str:
        """Return where the task's scratchpad is, relative to the repo."""

    async def read_scratchpad(self, task: TaskId, fork: str = "") -> str:
        """Return the text, empty when there is none; a `fork` (its six letters) has notes of its own."""

    async def write_scratchpad(self, task: TaskId, before: str, text: str, fork: str = "") -> str:
        """Replace `before` by `text` and return what now stands; a text changed meanwhile is merged, never lost."""

    async def archive_scratchpad(self, task: TaskId, before: str, text: str, time: str, fork: str = "") -> str:
        """Replace `before` by `text` and return what now stands; a text changed meanwhile is left as it is.

        What is replaced stands in the archive by then, once, under a name with `time`; no file there is written over.
        """


class Setup(Protocol):
    """What a repo needs before it can be worked in."""

    async def missing(self) -> tuple[str, ...]:
        """Return the files that would be written, none when the repo is set up."""

    async def write(self) -> tuple[str, ...]:
        """Write them, leaving what is there alone; return what was written."""


class Trust(Protocol):
    """What the repo would have us run or obey, and whether the user said yes to it."""

    async def question(self) -> tuple[str, ...]:
        """Return what has to be trusted, a line each; nothing when it was, or when there is nothing to trust."""

    async def accept(self) -> None:
        """Remember that the user trusts exactly what the question showed."""


class Rules(Protocol):
    """Rules that outlive a session, and what past sessions did, to try them on."""

    async def kept(self) -> tuple[StoredRule, ...]:
        """Return the rules that the user keeps outside of the repo and that count in it; raise `ConfigError`."""

    async def keep(self, kept: StoredRule) -> None:
        """Write a rule where it is kept; raise `TrustError` where the repo's own rules count for nothing."""

    async def revoke(self, kept: StoredRule) -> None:
        """Take a rule out of where it is kept; raise as `keep` does."""

    async def past(self, kind: Permission) -> PastActions:
        """Return the actions of a kind that stood at the gate in all sessions of the repo, bounded in number."""


class Skills(Protocol):
    """Folders with a `SKILL.md`."""

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        """Return these skills' texts in order; unknown names raise `ConfigError` naming the known ones."""


class Desktop(Protocol):
    """The desktop that the terminal is on, if there is one."""

    async def notify(self, title: str, text: str) -> None:
        """Show a notification, in the background of whatever the user does; where that cannot be, nothing happens."""
