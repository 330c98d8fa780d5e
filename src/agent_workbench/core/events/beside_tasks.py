"""Events beside the tasks: consultations, the open and the end of a chat, and notes that were found or are offered."""

from enum import StrEnum

from agent_workbench.core.consult_requests import ConsultAttempt
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.tools.spec import ToolSpec


class ConsultantAsked(RecordedValue, frozen=True):
    """A consultant was asked.

    `number` counts the consultations of the session from 1. `label` is the free label of the caller's session, `model`
    the only endpoint to ask (empty: those of the settings), `chain` the endpoints in order. The prompt is made of
    `protocols`, `discipline`, `knowledge`, `history`, `contents` (the files to judge) and `task` (the lines of the
    request). `paths` are the files, `about` the proposal that is judged. `wording` is the version of the prompt's form.
    """

    number: int
    skill: str
    phase: str
    task: str
    protocols: str
    discipline: str
    knowledge: str = ""
    history: str = ""
    contents: str = ""
    paths: tuple[str, ...] = ()
    label: str = ""
    model: str = ""
    chain: tuple[str, ...] = ()
    verifier: str = ""
    about: str = ""
    wording: int = 1
    answer_tokens: int = 0


class ConsultStatus(StrEnum):
    """End of a consultation: answered, without an answer, or stopped by the user."""

    OK = "ok"
    ERROR = "error"
    STOPPED = "stopped"


class ConsultantAnswered(RecordedValue, frozen=True):
    """A consultation ended. `text` is the answer, or what came of it; `reason` says why there is none.

    `cut_chars` of the answer are left out.
    """

    number: int
    status: ConsultStatus
    text: str
    model: str = ""
    duration_ms: int = 0
    attempts: tuple[ConsultAttempt, ...] = ()
    reason: str = ""
    cut_chars: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of all attempts."""
        return sum(each.tokens for each in self.attempts)

    @property
    def dollars(self) -> float:
        """Dollars of all attempts."""
        return sum(each.dollars for each in self.attempts)


class KnowledgeFound(RecordedValue, frozen=True):
    """The notes were searched for a task's words. Each of `notes` is an excerpt; its `symbol` is the note's title.

    `problem` says why some notes, or all of them, could not be searched (empty: all were).
    """

    query: str
    notes: tuple[Chunk, ...] = ()
    problem: str = ""


class OfferedNote(RecordedValue, frozen=True):
    """A note that nobody approved yet: its name, its whole text, and where it comes from."""

    name: str
    text: str
    origin: str = ""


class NotesOffered(RecordedValue, frozen=True):
    """Notes were offered beside the steps: by a consultant, an MCP client, or from rejections in `task`."""

    notes: tuple[OfferedNote, ...]
    origin: str
    task: str = ""


class ChatStarted(RecordedValue, frozen=True):
    """The session became a chat: it works on no task. `specs` are the tools of the conversation.

    `wording` is the version of the texts for the model.
    """

    wording: int
    specs: tuple[ToolSpec, ...] = ()


class ChatReplied(RecordedValue, frozen=True):
    """The answer of this step is the reply to the newest message.

    `cut`: it has no end of its own. It was cut at the limit of its length, or stopped as it repeated itself (`looped`).
    """

    step: int
    text: str
    cut: bool = False
    looped: bool = False

    @property
    def why_cut(self) -> str:
        """Why the reply is incomplete, in a few words; empty for a complete one."""
        if not self.cut:
            return ""
        return "stopped: it repeated itself" if self.looped else "cut at the token limit"


class ChatShortened(RecordedValue, frozen=True):
    """The context was full: prompts leave out the conversation up to the event `through_seq`."""

    through_seq: int
