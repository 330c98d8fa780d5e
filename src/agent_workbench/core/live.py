"""Transient state of a session that is never journaled: streamed text, progress, notices, questions."""

from msgspec import Struct, field

from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.database_report import Backlog
from agent_workbench.core.events import Recorded
from agent_workbench.core.history.replay_marks import Marks
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.repo.retrieval import IndexStatus
from agent_workbench.core.settings import UiSettings
from agent_workbench.core.state.session_state import SessionState


class Streaming(Struct, frozen=True):
    """An answer while it arrives: text, reasoning, tokens, seconds and dollars so far, and prompt progress.

    `prompt_cached` of the prompt's tokens came from the server's cache.
    """

    text: str = ""
    tokens: int = 0
    seconds: float = 0.0
    prompt_processed: int = 0
    prompt_total: int = 0
    prompt_cached: int = 0
    thought: str = ""
    dollars: float = 0.0


class Consulting(Struct, frozen=True):
    """A consultation that runs: the consultant, and its answer as far as it has come."""

    skill: str
    streaming: Streaming = field(default_factory=Streaming)


class Running(Struct, frozen=True):
    """A running command: its line, the tail of its output, the seconds so far."""

    line: str
    tail: str
    seconds: float


class LeftRunning(Struct, frozen=True):
    """A command that was left running: its line, the tail of its output, how it `ended` (empty: it runs)."""

    line: str
    tail: str = ""
    ended: str = ""


class PreflightQuestion(Struct, frozen=True):
    """A question that must be answered before a session can start; `key` is `init`, `model` or `trust`."""

    key: str
    title: str
    lines: tuple[str, ...]
    yes: str
    no: str


class Recording(Struct, frozen=True):
    """The recording that is replayed: its events and its marks. One value for the whole replay."""

    events: tuple[Recorded, ...] = ()
    marks: Marks = field(default_factory=Marks)


class ReplayPosition(Struct, frozen=True):
    """Position of a replay: the event shown last, the number of the last event, and the speed."""

    seq: int
    last_seq: int
    playing: bool = False
    speed: float = 1.0
    recording: Recording = field(default_factory=Recording)


class Followed(Struct, frozen=True):
    """A session that is only followed: who has it open (empty: nobody), and what the inbox says of its proposal.

    `decided` is a decision that is not recorded yet. `about` are remarks, such as where the task comes from.
    """

    holder: str = ""
    decided: InboxDecision | None = None
    about: tuple[str, ...] = ()


class Notice(Struct, frozen=True):
    """A remark for the user, to be shown once; `number` counts the notices of a session from 1."""

    number: int
    text: str


class Live(Struct, frozen=True):
    """Transient state of a session.

    `activity` is one line on what is being done now (empty: nothing), for `seconds` so far, and without
    any output for the last `quiet_seconds`. `notices` are the newest notices, oldest first;
    a reader shows those whose number it has not shown yet. `no_plan` says why the plan cannot be read. `ui` are the
    user's settings of the screen, as soon as they are read. `index` is the progress of the code search in the open
    workspace (None: no workspace is open). `taken` are tasks that other sessions work on. `awaits_model`: no model is
    ready in this process yet, so the recorded facts may be those of another one. `tier` is the kind of the endpoint
    that was ready last (None: none was). `followed`: another process works on the session, and decisions go to
    it through the inbox. `backlog` is what other machines cannot read of the session yet. `waits`: nothing is done
    until an intent comes, which the state alone does not tell while a move is brought to its end.
    """

    activity: str = ""
    seconds: float = 0.0
    quiet_seconds: float = 0.0
    streaming: Streaming | None = None
    running: Running | None = None
    left_running: LeftRunning | None = None
    consulting: Consulting | None = None
    question: PreflightQuestion | None = None
    replay: ReplayPosition | None = None
    followed: Followed | None = None
    ui: UiSettings | None = None
    notices: tuple[Notice, ...] = ()
    now: str = ""
    decidable: bool = True
    no_plan: str = ""
    taken: tuple[TaskId, ...] = ()
    index: IndexStatus | None = None
    awaits_model: bool = False
    tier: EndpointTier | None = None
    backlog: Backlog = Backlog()
    waits: bool = False


class SessionUpdate(Struct, frozen=True):
    """Newest state of a session with its transient part. `ended` closes the front end, which prints `farewell`."""

    state: SessionState
    live: Live = field(default_factory=Live)
    ended: bool = False
    farewell: str = ""
