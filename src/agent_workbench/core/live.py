"""Transient state of a session that is never journaled: streamed text, progress, notices, questions."""

from msgspec import Struct, field

from agent_workbench.core.events import Recorded
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.history.replay_marks import Marks
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan_text import PlanPiece
from agent_workbench.core.retrieval import Chunk, IndexStatus
from agent_workbench.core.settings import Permission, UiSettings
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


class Running(Struct, frozen=True):
    """A running command: its line, the tail of its output, the seconds so far."""

    line: str
    tail: str
    seconds: float


class PreflightQuestion(Struct, frozen=True):
    """A question that must be answered before a session can start; `key` is `init` or `trust`."""

    key: str
    title: str
    lines: tuple[str, ...]
    yes: str
    no: str


class FoundCode(Struct, frozen=True):
    """Results of the user's last code search, best first. `number` counts the searches."""

    asked: str
    chunks: tuple[Chunk, ...]
    number: int


class Recording(Struct, frozen=True):
    """The recording that is replayed: its events and its marks. One value for the whole replay."""

    events: tuple[Recorded, ...] = ()
    marks: Marks = field(default_factory=Marks)


class PlanAnswer(Struct, frozen=True):
    """Answer to the user's last request about the plan's text. `number` counts these answers.

    `piece` is the text to edit, or the edited one (None: there is none); `fault` says why it could not be shown or
    saved.
    """

    piece: PlanPiece | None
    number: int
    fault: str = ""


class OpenedFile(Struct, frozen=True):
    """A file that the user asked for: its text (cut if it is long), and the line to show first.

    `number` counts the requests.
    """

    path: str
    line: int
    text: str
    number: int


class PastShown(Struct, frozen=True):
    """Past actions of a kind that the user asked for; `number` counts the requests."""

    kind: Permission
    past: PastActions
    number: int


class ReplayPosition(Struct, frozen=True):
    """Position of a replay: the event shown last, the number of the last event, and the speed."""

    seq: int
    last_seq: int
    playing: bool = False
    speed: float = 1.0
    recording: Recording = field(default_factory=Recording)


class Live(Struct, frozen=True):
    """Transient state of the moment. `activity` is one line (empty: idle); `notice` is shown to the user once.

    `no_plan` says why the plan could not be read. `ui` are the user's display settings, None until the settings were
    read. `index` is the progress of the code search's index (None: no workspace is open), `found` the result of the
    user's last search in it. `past` are the past actions that the user asked for, `taken` the tasks of other sessions.
    `plan` answers the last request about the plan's text, `opened` is the last file asked for.
    """

    activity: str = ""
    streaming: Streaming | None = None
    running: Running | None = None
    question: PreflightQuestion | None = None
    replay: ReplayPosition | None = None
    ui: UiSettings | None = None
    notice: str = ""
    notice_number: int = 0
    now: str = ""
    decidable: bool = True
    no_plan: str = ""
    taken: tuple[TaskId, ...] = ()
    index: IndexStatus | None = None
    found: FoundCode | None = None
    past: PastShown | None = None
    plan: PlanAnswer | None = None
    opened: OpenedFile | None = None


class SessionUpdate(Struct, frozen=True):
    """Newest state of a session with its transient part. `ended` closes the front end, which prints `farewell`."""

    state: SessionState
    live: Live = field(default_factory=Live)
    ended: bool = False
    farewell: str = ""
