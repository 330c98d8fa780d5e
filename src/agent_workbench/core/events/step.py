"""Events of the steps: prompts, what was added to them, and answers."""

from enum import StrEnum

from msgspec import field

from agent_workbench.core.events.plan import Author
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import AnswerFigures, Purpose, Sampling
from agent_workbench.core.plan import Task
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.repo_map import RepoMap
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.text.commit_subjects import CommitConvention
from agent_workbench.core.tools.spec import ToolSpec

FAILING_FIRST = 4
"""Version of words, flow and forms of answers (`TaskStarted.wording`) that was made for small models: the failing
output is in the first prompt, and the judges of a task are read-only. Tasks of older versions go on as they began."""
SHORT_DOCSTRINGS = 5
"""Version since which a piece of Python is shown with the first lines of its docstrings alone."""


class SkillText(RecordedValue, frozen=True):
    """A skill that goes into the prompt: the `reason` why it was chosen, and its part's tokens (0: not recorded)."""

    name: str
    text: str
    reason: str = ""
    tokens: int = 0


class SkillLeftOut(RecordedValue, frozen=True):
    """A skill that fits the task and is not in the prompt, with the reason, and its part's tokens (0: not counted)."""

    name: str
    reason: str
    tokens: int = 0


class RepoInstructions(RecordedValue, frozen=True):
    """A file of the repository with instructions for agents: its text in the prompt, and its size in bytes.

    `cut_bytes` of it are left out.
    """

    path: str
    text: str
    size: int
    cut_bytes: int = 0


class TaskStarted(RecordedValue, frozen=True):
    """A task got its workspace. `definition` and `specs` apply to this run even if the plan or a tool changes.

    `checks` are its acceptance commands, the repo's test command and lint, in order. The first `required` must pass;
    the others must not get worse than before the change. `skills` are those of versions before 3, later ones
    record `SkillsChosen`. `wording` is the version of the texts for the model in this run; 0 is any version that did
    not record it. `tools` are the names of `specs`; journals of 0.1 hold the names alone. `commit_convention` is the
    form of the commit subjects before the task. `instructions` are those of the repository, the nearest to the task's
    files last. `judges` are the files of the base that decide whether the task is done (`core.checks.judges`).
    `suite` is that of the required checks which is the repo's own test command, empty if it is none of them.
    """

    task: TaskId
    definition: Task
    workspace: WorkspaceFacts
    checks: tuple[str, ...]
    tools: tuple[str, ...] = ()
    required: int = 0
    skills: tuple[SkillText, ...] = ()
    wording: int = 0
    specs: tuple[ToolSpec, ...] = ()
    commit_convention: CommitConvention = CommitConvention.NONE
    instructions: tuple[RepoInstructions, ...] = ()
    judges: tuple[str, ...] = ()
    suite: str = ""


class SkillsChosen(RecordedValue, frozen=True):
    """The skills of the task's prompts were chosen, or the user changed the choice (`by`). The newest choice counts.

    `max_tokens` is the limit for all of them, which only the user exceeds. `counted`: the tokens are those of the
    model's server, else estimated from the characters.
    """

    task: TaskId
    skills: tuple[SkillText, ...]
    left_out: tuple[SkillLeftOut, ...] = ()
    by: Author = Author.WORKBENCH
    max_tokens: int = 0
    counted: bool = False


class CodeRetrieved(RecordedValue, frozen=True):
    """The code search for the first prompt of a task or a chat returned these chunks. `map` shows the files around.

    `failing` is what fails after an attempt that is kept: the next prompt is the first one again, with the code as it
    is now and this at its end. It is empty for the first search.
    """

    query: str
    chunks: tuple[Chunk, ...]
    map: RepoMap | None = None
    failing: str = ""


class PromptPart(RecordedValue, frozen=True):
    """One part of a prompt: its label, its tokens (0: not counted), and SHA-256 of its text."""

    label: str
    tokens: int
    sha: str = ""


class PromptBuilt(RecordedValue, frozen=True):
    """A prompt was built: its parts that are new since the last one, all its tokens, SHA-256 of its messages.

    `endpoint` is who is asked, `seed` the seed of its sampling. `grammar_sha` is SHA-256 of the answer's grammar
    (empty: none), `answer_tokens` the limit of its length (0: not recorded).
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
    """The model answered. `reasoning` is recorded and never sent back."""

    step: int
    text: str
    figures: AnswerFigures
    endpoint: str
    model: str = ""
    reasoning: str = ""


class InterruptCause(StrEnum):
    """Reason why an answer is unfinished; `repetition`: it said the same again and again."""

    LENGTH = "length"
    STOPPED = "stopped"
    DIED = "died"
    REPETITION = "repetition"


class ModelInterrupted(RecordedValue, frozen=True):
    """An answer was interrupted; it is never executed. `partial` of a repetition ends before the second copy."""

    step: int
    partial: str
    cause: InterruptCause
    what: str = ""
    figures: AnswerFigures = field(default_factory=AnswerFigures)
    endpoint: str = ""
    model: str = ""
    reasoning: str = ""

    @property
    def cut(self) -> bool:
        """True if the answer itself was at fault: it got too long, or repeated itself."""
        return self.cause in {InterruptCause.LENGTH, InterruptCause.REPETITION}


class ActionRejected(RecordedValue, frozen=True):
    """An answer held no valid action; `reason` says exactly what was wrong.

    `empty_finish`: a finish was sent back because nothing is changed. That is no failed step. `judges` are files that
    the answer tried to change although they decide whether the task is done. `again`: the answer changed nothing or
    left a part out, so the next prompt is the one that it answered.
    """

    step: int
    reason: str
    empty_finish: bool = False
    judges: tuple[str, ...] = ()
    again: bool = False


class ReflexionNoted(RecordedValue, frozen=True):
    """The model explained why a step failed."""

    step: int
    text: str


class UserSaid(RecordedValue, frozen=True):
    """The user added a message to the next prompt.

    In a chat its `files` and `skills`, which it mentions, go with it. `begun` is the answer that the user cut before.
    """

    text: str
    files: tuple[Chunk, ...] = ()
    skills: tuple[SkillText, ...] = ()
    begun: str = ""


class ChunkPinned(RecordedValue, frozen=True):
    """The user pinned a piece of code, so that compactions keep it, or unpinned it (not `pinned`).

    `imports` are those of its file, if they are offered for rewriting with it.
    """

    chunk: Chunk
    pinned: bool = True
    imports: Chunk | None = None


class ChunkDropped(RecordedValue, frozen=True):
    """The user marked the code at `place` as irrelevant; the next compaction removes it."""

    place: str


class CompactionAsked(RecordedValue, frozen=True):
    """The user asked for a summary of the older steps before the context is full."""


class ContextFilled(RecordedValue, frozen=True):
    """A prompt and its answer no longer fit into the context: older steps must become a summary.

    The summary is requested with a prompt that ends at event `through_seq` (-1: the newest), so that it fits. `by` is
    the user if they asked while there was room; then the summary is optional. `notes`: the task's scratchpad of
    `prompt_tokens` tokens is too long, and the summary replaces it instead of steps.
    """

    step: int
    purpose: Purpose
    prompt_tokens: int
    context_tokens: int
    through_seq: int = -1
    by: Author = Author.WORKBENCH
    notes: bool = False


class ContextCompacted(RecordedValue, frozen=True):
    """A summary replaced the task's events up to `through_seq` in the prompt.

    These stay verbatim: rules, task, skills, notes, the user's messages, the `pinned` code, as much of the found `code`
    as fits, the change so far (`diff`), the `failing` output, and the events after `through_seq`. These events, the
    notes and the messages are each cut to `piece_chars` characters (0: none is cut), the notes to `notes_chars` (0: to
    `piece_chars`).

    The repository's map, and its instructions together, are cut to `about_chars` (0: not at all).

    `by` is who wrote the summary: the model, the user, or the workbench if the model could not. `newest_apart`: `diff`
    leaves out the changes of the newest steps, whose own diffs follow it. `repeated` are code lines that these diffs
    show and `code` therefore omits.
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
    about_chars: int = 0
