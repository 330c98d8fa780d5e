"""Events of a session: facts in the past tense. The journal holds nothing else.

A body's field may be added with a default; anything else is a new schema version with a migration.
"""

from msgspec import Struct

from agent_workbench.core.events.beside_tasks import (
    ChatReplied,
    ChatShortened,
    ChatStarted,
    ConsultantAnswered,
    ConsultantAsked,
    ConsultStatus,
    KnowledgeFound,
    NotesOffered,
    OfferedNote,
)
from agent_workbench.core.events.gate import (
    AbortAsked,
    ActionDecided,
    ActionProposed,
    HookAnswered,
    HookStarted,
    PauseChanged,
    ProposalReplaced,
    UndoAsked,
)
from agent_workbench.core.events.plan import (
    Author,
    DispatchedTask,
    PlanAnswered,
    PlanAsked,
    PlanDispatched,
    PlanPrompted,
    PlanRead,
    PlanRejected,
    PlanSurveyed,
    ScratchpadChanged,
    TaskStatusChanged,
    TasksWithdrawn,
)
from agent_workbench.core.events.session import (
    ApprovalChanged,
    EndpointChosen,
    EndpointPassed,
    GrammarIgnored,
    ModeChanged,
    ModelObserved,
    ModelSwitched,
    RetryAsked,
    SessionConfigured,
    SessionForked,
    SessionLeft,
    SessionResumed,
    SessionStarted,
    TaskRouted,
    TroubleMet,
)
from agent_workbench.core.events.step import (
    FAILING_FIRST,
    SHORT_DOCSTRINGS,
    ActionRejected,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    CompactionAsked,
    ContextCompacted,
    ContextFilled,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    PromptPart,
    ReflexionNoted,
    RepoInstructions,
    SkillLeftOut,
    SkillsChosen,
    SkillText,
    TaskStarted,
    UserSaid,
)
from agent_workbench.core.events.work import (
    ActionFinished,
    ActionResult,
    ActionStarted,
    CheckpointTaken,
    CodeEvent,
    PatchApplied,
    PlaybookFinished,
    StepUndone,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TestsFinished,
)

SCHEMA_VERSION = 1

SessionEvent = (
    SessionStarted
    | SessionForked
    | SessionConfigured
    | SessionResumed
    | SessionLeft
    | ModelObserved
    | ModelSwitched
    | EndpointChosen
    | EndpointPassed
    | TaskRouted
    | GrammarIgnored
    | TroubleMet
    | RetryAsked
    | ApprovalChanged
    | ModeChanged
)
PlanEvent = (
    PlanRead
    | TaskStatusChanged
    | ScratchpadChanged
    | PlanAsked
    | PlanSurveyed
    | PlanPrompted
    | PlanAnswered
    | PlanRejected
    | PlanDispatched
    | TasksWithdrawn
)
StepEvent = (
    TaskStarted
    | SkillsChosen
    | KnowledgeFound
    | CodeRetrieved
    | PromptBuilt
    | ModelAnswered
    | ModelInterrupted
    | ActionRejected
    | ReflexionNoted
    | UserSaid
    | ChunkPinned
    | ChunkDropped
    | CompactionAsked
    | ContextFilled
    | ContextCompacted
)
GateEvent = NotesOffered | ActionProposed | ProposalReplaced | ActionDecided | AbortAsked | UndoAsked | PauseChanged
WorkEvent = (
    ActionStarted
    | ActionFinished
    | PatchApplied
    | PlaybookFinished
    | StepUndone
    | CheckpointTaken
    | TestsFinished
    | TaskCommitted
    | TaskMerged
    | TaskRolledBack
    | TaskFinished
)
ConsultEvent = ConsultantAsked | ConsultantAnswered
HookEvent = HookStarted | HookAnswered
ChatEvent = ChatStarted | ChatReplied | ChatShortened
Event = SessionEvent | PlanEvent | StepEvent | GateEvent | WorkEvent | ConsultEvent | HookEvent | ChatEvent


class Recorded(Struct, frozen=True):
    """An event in the journal: position, UTC time in ISO 8601 with microseconds, hash of its line."""

    seq: int
    time: str
    event: Event
    hash: str = ""


__all__ = [
    "FAILING_FIRST",
    "SCHEMA_VERSION",
    "SHORT_DOCSTRINGS",
    "AbortAsked",
    "ActionDecided",
    "ActionFinished",
    "ActionProposed",
    "ActionRejected",
    "ActionResult",
    "ActionStarted",
    "ApprovalChanged",
    "Author",
    "ChatEvent",
    "ChatReplied",
    "ChatShortened",
    "ChatStarted",
    "CheckpointTaken",
    "ChunkDropped",
    "ChunkPinned",
    "CodeEvent",
    "CodeRetrieved",
    "CompactionAsked",
    "ConsultEvent",
    "ConsultStatus",
    "ConsultantAnswered",
    "ConsultantAsked",
    "ContextCompacted",
    "ContextFilled",
    "DispatchedTask",
    "EndpointChosen",
    "EndpointPassed",
    "Event",
    "GateEvent",
    "GrammarIgnored",
    "HookAnswered",
    "HookEvent",
    "HookStarted",
    "InterruptCause",
    "KnowledgeFound",
    "ModeChanged",
    "ModelAnswered",
    "ModelInterrupted",
    "ModelObserved",
    "ModelSwitched",
    "NotesOffered",
    "OfferedNote",
    "PatchApplied",
    "PauseChanged",
    "PlanAnswered",
    "PlanAsked",
    "PlanDispatched",
    "PlanEvent",
    "PlanPrompted",
    "PlanRead",
    "PlanRejected",
    "PlanSurveyed",
    "PlaybookFinished",
    "PromptBuilt",
    "PromptPart",
    "ProposalReplaced",
    "Recorded",
    "ReflexionNoted",
    "RepoInstructions",
    "RetryAsked",
    "ScratchpadChanged",
    "SessionConfigured",
    "SessionEvent",
    "SessionForked",
    "SessionLeft",
    "SessionResumed",
    "SessionStarted",
    "SkillLeftOut",
    "SkillText",
    "SkillsChosen",
    "StepEvent",
    "StepUndone",
    "TaskCommitted",
    "TaskFinished",
    "TaskMerged",
    "TaskRolledBack",
    "TaskRouted",
    "TaskStarted",
    "TaskStatusChanged",
    "TasksWithdrawn",
    "TestsFinished",
    "TroubleMet",
    "UndoAsked",
    "UserSaid",
    "WorkEvent",
]
