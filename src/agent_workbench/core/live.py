"""What is true only at this moment and is never journaled: streaming text, progress, notices, questions."""

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
    """An answer as it comes: reasoning, text, tokens, seconds and dollars so far, and how much of the prompt was read.

    `prompt_cached` of the prompt's tokens were in the server's cache.
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
    """A command that runs now: its line, the tail of its output, seconds so far."""

    line: str
    tail: str
    seconds: float


class Question(Struct, frozen=True):
    """Something to settle before a session can start: `key` is `init` or `trust`."""

    key: str
    title: str
    lines: tuple[str, ...]
    yes: str
    no: str


class FoundCode(Struct, frozen=True):
    """What was found for what the user asked for: pieces to choose from, best first. `number` counts the searches."""

    asked: str
    chunks: tuple[Chunk, ...]
    number: int


class Recording(Struct, frozen=True):
    """What a replay goes through: the events, and what stands out among them. The same value from beginning to end."""

    events: tuple[Recorded, ...] = ()
    marks: Marks = field(default_factory=Marks)


class PlanAnswer(Struct, frozen=True):
    """What came of the user's last wish for the plan's text. `number` counts these answers.

    `piece` is to be edited, or was (None: there is none); `fault` says why it could not be shown or kept.
    """

    piece: PlanPiece | None
    number: int
    fault: str = ""


class OpenedFile(Struct, frozen=True):
    """A file that the user wanted to see: its text (cut where it is long), and the line to begin at.

    `number` counts them.
    """

    path: str
    line: int
    text: str
    number: int


class PastShown(Struct, frozen=True):
    """Past actions of a kind, for which the user asked; `number` counts how often."""

    kind: Permission
    past: PastActions
    number: int


class ReplayPosition(Struct, frozen=True):
    """Where a replay stands: the event shown last, the number of the last one, whether it plays, and how fast."""

    seq: int
    last_seq: int
    playing: bool = False
    speed: float = 1.0
    recording: Recording = field(default_factory=Recording)


class Live(Struct, frozen=True):
    """The moment. `activity` is one line on what is being done now (empty: nothing); `notice` is for the user once.

    `no_plan` says why the plan could not be read.
    `ui` is how the user wants the screen, from when the settings were read. `index` is how far the code search is with
    the workspace (None: there is none open), `found` what the user's last search of it brought.
    `past` are the past actions that the user wanted to see.
    `taken` are the tasks that other sessions are at.
    `plan` is the answer to what the user wanted of the plan's text, `opened` the file they wanted to see.
    """

    activity: str = ""
    streaming: Streaming | None = None
    running: Running | None = None
    question: Question | None = None
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
    """The newest state with the moment; `ended` closes the front end, `farewell` is printed after it."""

    state: SessionState
    live: Live = field(default_factory=Live)
    ended: bool = False
    farewell: str = ""
