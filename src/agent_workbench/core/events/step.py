"""The steps' events: what the model was shown, what it was told besides, and what it said."""

from enum import StrEnum

from msgspec import field

from agent_workbench.core.events.plan import Author
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import AnswerFigures, Purpose, Sampling
from agent_workbench.core.plan import Task
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.workspace import WorkspaceFacts


class SkillText(RecordedValue, frozen=True):
    """A skill that goes into the prompt."""

    name: str
    text: str


class TaskStarted(RecordedValue, frozen=True):
    """A task got its workspace. `definition` and `tools` are what this run goes by, whatever becomes of the plan.

    `checks` are its acceptance commands, the repo's test command and lint, in order. The first `required` must pass;
    the others must not get worse than they were before the change. `wording` is the version of the words in which the
    model is told of this run's events; 0 stands for all versions that did not record it.
    """

    task: TaskId
    definition: Task
    workspace: WorkspaceFacts
    checks: tuple[str, ...]
    tools: tuple[str, ...] = ()
    required: int = 0
    skills: tuple[SkillText, ...] = ()
    wording: int = 0


class CodeRetrieved(RecordedValue, frozen=True):
    """What the search brought for the task's first prompt."""

    query: str
    chunks: tuple[Chunk, ...]


class PromptPart(RecordedValue, frozen=True):
    """One part of a prompt: what it is, its tokens (0 where the server cannot count), and SHA-256 of its text."""

    label: str
    tokens: int
    sha: str = ""


class PromptBuilt(RecordedValue, frozen=True):
    """A prompt was made: parts that are new since the last one, tokens of all, SHA-256 of its messages.

    `endpoint` is who is asked, `seed` what its sampling starts from, `grammar_sha` SHA-256 of the grammar that the
    answer is held to (empty: none), `answer_tokens` how long it may be (0: not recorded).
    """

    step: int
    purpose: Purpose
    messages: int
    tokens: int
    sha: str
    parts: tuple[PromptPart, ...] = ()
    endpoint: str = ""
    seed: int = 0
    grammar_sha: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    answer_tokens: int = 0


class ModelAnswered(RecordedValue, frozen=True):
    """The whole answer, who gave it, and what it cost. `reasoning` is kept and never sent back."""

    step: int
    text: str
    figures: AnswerFigures
    endpoint: str
    model: str = ""
    reasoning: str = ""


class InterruptCause(StrEnum):
    """Why an answer has no end."""

    LENGTH = "length"
    STOPPED = "stopped"
    DIED = "died"


class ModelInterrupted(RecordedValue, frozen=True):
    """An answer without its end; never executed."""

    step: int
    partial: str
    cause: InterruptCause
    what: str = ""
    figures: AnswerFigures = field(default_factory=AnswerFigures)
    endpoint: str = ""
    model: str = ""
    reasoning: str = ""


class ActionRejected(RecordedValue, frozen=True):
    """An answer that holds no valid action: exactly what was wrong with it.

    `empty_finish`: it is a finish that was sent back because nothing is changed, which is no failed step.
    """

    step: int
    reason: str
    empty_finish: bool = False


class ReflexionNoted(RecordedValue, frozen=True):
    """The model's own account of why a step failed."""

    step: int
    text: str


class UserSaid(RecordedValue, frozen=True):
    """A word from the user to the model; it stands in the next prompt."""

    text: str


class ChunkPinned(RecordedValue, frozen=True):
    """The user wants this piece of code kept before the model, or (not `pinned`) no longer so."""

    chunk: Chunk
    pinned: bool = True


class ChunkDropped(RecordedValue, frozen=True):
    """The user says that the piece of code at `place` does not matter; the next compaction leaves it out."""

    place: str


class CompactionAsked(RecordedValue, frozen=True):
    """The user wants the older steps to become a summary, though there is room yet."""


class ContextFilled(RecordedValue, frozen=True):
    """A prompt and its answer do not fit into the context any more: older steps have to become a summary.

    The summary is asked of a prompt that ends with the event `through_seq` (-1: the newest), so that it finds room.
    `by` is the user where there is room and they asked for it; then they may do without it. `notes`: it is the task's
    scratchpad of `prompt_tokens` tokens that is too long; a summary is to take its place, and no step's.
    """

    step: int
    purpose: Purpose
    prompt_tokens: int
    context_tokens: int
    through_seq: int = -1
    by: Author = Author.WORKBENCH
    notes: bool = False


class ContextCompacted(RecordedValue, frozen=True):
    """What the task's events up to `through_seq` were is told by `summary` from now on.

    Verbatim beside it stay rules, task, skills, notes, the user's words, the `pinned` code and what of the found `code`
    has room, the change so far (`diff`), the `failing` output, and the events after `through_seq`. Of those, of the
    notes and of the words, each is cut to `piece_chars` characters (0: none is cut). `by` is who wrote the summary: the
    model, the user, or the workbench where the model could not. `newest_apart`: `diff` leaves out what the newest steps
    changed, as their diffs stand below it. `repeated` are lines of the code that these diffs show, and `code` does not.
    The notes are cut to `notes_chars` characters (0: to `piece_chars`).
    """

    step: int
    summary: str
    by: Author
    through_seq: int
    pinned: tuple[Chunk, ...] = ()
    diff: str = ""
    failing: str = ""
    code: tuple[Chunk, ...] = ()
    piece_chars: int = 0
    newest_apart: bool = False
    repeated: tuple[Chunk, ...] = ()
    notes_chars: int = 0
