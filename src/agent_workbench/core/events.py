"""Every event of a session: what happened, in the past tense, as pure values. The journal holds nothing else.

A body's field may be added with a default; anything else is a new schema version with a migration.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from agent_workbench.core.checks import CheckPurpose, CheckResult
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposals import HunkVerdict, Preimage, Proposal, Verdict
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.settings import Approvals, GateKind, Limits
from agent_workbench.core.workspace import Checkpoint, MergeOutcome, SandboxFacts, WorkspaceFacts

SCHEMA_VERSION = 1


class Author(StrEnum):
    """Who changed a plan or a scratchpad."""

    USER = "user"
    MODEL = "model"
    WORKBENCH = "workbench"


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """Line 0 of every journal."""

    session: SessionId
    repo: str
    base: CommitId
    product_version: str
    parent: SessionId | None = None
    parent_seq: int | None = None


@dataclass(frozen=True, slots=True)
class SessionConfigured:
    """What this session was set to do; recorded at its start and at each resumption."""

    approvals: Approvals
    limits: Limits
    tools: tuple[str, ...]
    test_command: str
    lint_command: str
    answer_tokens: int
    answer_seconds: float
    sandbox: SandboxFacts
    headless: bool = False


@dataclass(frozen=True, slots=True)
class SessionResumed:
    """The journal was opened again; `torn_bytes` of an unfinished last line were set aside."""

    torn_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SessionLeft:
    """The user left, or the process was asked to end; the work can be taken up again."""

    reason: str


@dataclass(frozen=True, slots=True)
class ModelObserved:
    """The server that answers introduced itself."""

    facts: ModelFacts


@dataclass(frozen=True, slots=True)
class TroubleMet:
    """Something outside stopped the work; it waits for `RetryAsked`, a resumption, or an abort."""

    source: str
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """The user wants what failed to be tried again."""


@dataclass(frozen=True, slots=True)
class ApprovalChanged:
    """The user opened or closed a kind of gate for the rest of the session."""

    kind: GateKind
    always: bool


@dataclass(frozen=True, slots=True)
class PlanRead:
    """The plan as it stood in its file."""

    path: str
    plan: Plan
    by: Author = Author.WORKBENCH


@dataclass(frozen=True, slots=True)
class TaskStatusChanged:
    """A task's status was written to the plan."""

    task: TaskId
    status: TaskStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ScratchpadChanged:
    """The whole text of a task's scratchpad after a change."""

    task: TaskId
    text: str
    by: Author


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill that goes into the prompt."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task got its workspace. `definition` and `tools` are what this run goes by, whatever becomes of the plan.

    `checks` are its acceptance commands, the repo's test command and lint, in order. The first `required` must pass;
    the others must not get worse than they were before the change.
    """

    task: TaskId
    definition: Task
    workspace: WorkspaceFacts
    checks: tuple[str, ...]
    tools: tuple[str, ...] = ()
    required: int = 0
    skills: tuple[SkillText, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeRetrieved:
    """What the search brought for the task's first prompt."""

    query: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of a prompt: what it is, and its tokens (0 where the server cannot count)."""

    label: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptBuilt:
    """A prompt was made: parts that are new since the last one, tokens of all, SHA-256 of its messages."""

    step: int
    purpose: Purpose
    messages: int
    tokens: int
    sha: str
    parts: tuple[PromptPart, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The whole answer, and what it cost."""

    step: int
    text: str
    figures: AnswerFigures
    endpoint: str


class InterruptCause(StrEnum):
    """Why an answer has no end."""

    LENGTH = "length"
    STOPPED = "stopped"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class ModelInterrupted:
    """An answer without its end; never executed."""

    step: int
    partial: str
    cause: InterruptCause
    what: str = ""
    figures: AnswerFigures = field(default_factory=AnswerFigures)


@dataclass(frozen=True, slots=True)
class ActionRejected:
    """An answer that holds no valid action: exactly what was wrong with it."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReflexionNoted:
    """The model's own account of why a step failed."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class ActionProposed:
    """An action stands at the gate."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class ProposalReplaced:
    """What waits was changed before its decision: by the user's editing, or because a file moved under it."""

    proposal: Proposal
    reason: str
    by: Author


@dataclass(frozen=True, slots=True)
class ActionDecided:
    """The gate was answered; `by` is `user` or `policy:<rule>`."""

    proposal_id: ProposalId
    verdict: Verdict
    by: str
    reason: str = ""
    resulting_patch_sha: str = ""
    hunks: tuple[HunkVerdict, ...] = ()
    preimages: tuple[Preimage, ...] = ()


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """The user gave the task up while nothing waited at the gate."""

    reason: str


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """An approved action is about to have its effect."""

    proposal_id: ProposalId


class ActionResult(StrEnum):
    """How an action ended."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ActionFinished:
    """What came of an action; `observation` is what the model is told, bounded; `output` the rest that is kept."""

    proposal_id: ProposalId
    result: ActionResult
    observation: str
    seconds: float = 0.0
    output: str = ""
    cut_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PatchApplied:
    """Approved changes stand in the workspace; `tree` is the tree of all that was approved so far.

    `shown` are the changed files' lines around the change as they now are, for the prompt.
    """

    proposal_id: ProposalId
    paths: tuple[str, ...]
    patch_sha: str
    tree: str
    shown: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointTaken:
    """The workspace's exact content is kept."""

    step: int
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class TestsFinished:
    """Acceptance commands and lint ran (all, in order)."""

    __test__: ClassVar[bool] = False  # the name would make pytest collect it

    purpose: CheckPurpose
    results: tuple[CheckResult, ...]
    restored_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskCommitted:
    """The approved changes are a commit on the task's branch."""

    task: TaskId
    commit: CommitId
    branch: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskMerged:
    """The task's commit is on the user's branch."""

    task: TaskId
    outcome: MergeOutcome


@dataclass(frozen=True, slots=True)
class TaskRolledBack:
    """The workspace is back at its base; the attempts stay under `refs/agent/`."""

    task: TaskId
    to: CommitId
    reason: str


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """The task is over in this session."""

    task: TaskId
    status: TaskStatus
    reason: str


SessionEvent = (
    SessionStarted
    | SessionConfigured
    | SessionResumed
    | SessionLeft
    | ModelObserved
    | TroubleMet
    | RetryAsked
    | ApprovalChanged
)
PlanEvent = PlanRead | TaskStatusChanged | ScratchpadChanged
StepEvent = (
    TaskStarted | CodeRetrieved | PromptBuilt | ModelAnswered | ModelInterrupted | ActionRejected | ReflexionNoted
)
GateEvent = ActionProposed | ProposalReplaced | ActionDecided | AbortAsked
WorkEvent = (
    ActionStarted
    | ActionFinished
    | PatchApplied
    | CheckpointTaken
    | TestsFinished
    | TaskCommitted
    | TaskMerged
    | TaskRolledBack
    | TaskFinished
)
Event = SessionEvent | PlanEvent | StepEvent | GateEvent | WorkEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it stands in the journal: position, UTC time in ISO 8601 with microseconds, hash of its line."""

    seq: int
    time: str
    event: Event
    hash: str = ""
