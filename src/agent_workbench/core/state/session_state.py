"""What a session's events amount to: the one value that panes, prompts and reports are made from."""

from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.checks.results import CheckPurpose, CheckResult, acceptable
from agent_workbench.core.events import (
    ActionDecided,
    ModelAnswered,
    PromptBuilt,
    Recorded,
    SessionConfigured,
    SkillText,
    TroubleMet,
)
from agent_workbench.core.ids import NO_SESSION, CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposals import Proposal, ProposalStage
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.rules.matching import StoredRule
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.growing_tuple import Log
from agent_workbench.core.state.prompt_reads import PromptReads
from agent_workbench.core.workspace import Checkpoint, MergeOutcome, WorkspaceFacts

NO_COMMIT = CommitId("")


class Phase(StrEnum):
    """Where a task's run stands; together with the open proposal it says what comes next."""

    BASELINE = "baseline"
    RETRIEVING = "retrieving"
    STEPPING = "stepping"
    CHECKING = "checking"
    COMPACTING = "compacting"
    REFLECTING = "reflecting"
    COMMITTING = "committing"
    ROLLING_BACK = "rolling_back"
    CLOSING = "closing"
    OVER = "over"


ENDED = frozenset({Phase.ROLLING_BACK, Phase.CLOSING, Phase.OVER})
"""The phases in which nothing is done any more that the user could steer."""


class TaskRun(Struct, frozen=True):
    """One task being worked on in one workspace.

    `tree` is the git tree of everything approved so far, `checked_tree` the one the last checks saw. `history` holds
    every event since the task started; prompts and the transcript are made from it. `working_seconds` counts answers
    and actions, not the time spent waiting at gates. `reads` sums up what the server read of the prompts,
    `last_figures` are those of the prompt before, as far as the next one grows from it. `compacts_for` is the phase to
    which a compaction goes back; `compaction_asked`: the user wants one that need not be. `notes_full`: it is the
    scratchpad that is to be summarised, `notes_settled` how many characters it had when that was decided last.
    `undoing` is the proposal whose diff is to be taken back; `paused`: the model is not to be asked.
    `finish_returned`: a finish with nothing changed was sent back to the model. `failures` counts the steps that failed
    in a row, `reflected` those of them that the newest reflexion came after. `fork` are the six letters of the session
    that took the run over from its parent, empty where it was begun in this one.
    """

    task: TaskId
    definition: Task
    workspace: WorkspaceFacts
    checks: tuple[str, ...]
    required: int
    tools: tuple[str, ...] = ()
    skills: tuple[SkillText, ...] = ()
    phase: Phase = Phase.BASELINE
    tree: str = ""
    checked_tree: str = ""
    step: int = 0
    answered_step: int = 0
    history: Log[Recorded] = field(default_factory=Log)
    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None
    answer: ModelAnswered | None = None
    baseline: tuple[CheckResult, ...] | None = None
    results: tuple[CheckResult, ...] | None = None
    check_purpose: CheckPurpose = CheckPurpose.AFTER_DIFF
    prompt_parts: int = 0
    tool_calls: int = 0
    failures: int = 0
    reflected: int = 0
    reflexions: int = 0
    tokens: int = 0
    dollars: float = 0.0
    working_seconds: float = 0.0
    reads: PromptReads = field(default_factory=PromptReads)
    last_figures: AnswerFigures | None = None
    pinned: tuple[Chunk, ...] = ()
    dropped: tuple[str, ...] = ()
    compactions: int = 0
    compacts_for: Phase = Phase.STEPPING
    compaction_asked: bool = False
    notes_full: bool = False
    notes_settled: int = 0
    undoing: ProposalId | None = None
    paused: bool = False
    finish_returned: bool = False
    checkpoint: Checkpoint | None = None
    fork: str = ""
    commit: CommitId | None = None
    merged: MergeOutcome | None = None
    status: TaskStatus | None = None
    reason: str = ""

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits at the gate, if one does."""
        return self.proposal if self.proposal is not None and self.stage is ProposalStage.WAITING else None

    @property
    def merging(self) -> bool:
        """True from the approval of a merge to its end; it is not given up halfway."""
        begun = self.stage in {ProposalStage.APPROVED, ProposalStage.RUNNING}
        return begun and self.proposal is not None and self.proposal.kind is Permission.MERGE

    @property
    def held(self) -> bool:
        """True when the model would be asked now, and is not as the user paused."""
        asks = self.phase in {Phase.STEPPING, Phase.REFLECTING, Phase.COMPACTING}
        begun = self.stage in {ProposalStage.WAITING, ProposalStage.APPROVED, ProposalStage.RUNNING}
        return self.paused and asks and not begun and self.answer is None and self.undoing is None

    def known_parts(self, purpose: Purpose) -> int:
        """Return how many parts of the next prompt stood in the one before; a prompt about the notes is its own."""
        return 0 if self.notes_full and purpose is Purpose.SUMMARY else self.prompt_parts

    @property
    def changed(self) -> bool:
        """True when something was approved that is not in the base."""
        return self.tree != self.workspace.tree

    @property
    def passes(self) -> bool:
        """True when the last checks saw all that is approved, and nothing but it, and are acceptable."""
        return self.results is not None and self.checked_tree == self.tree and self.acceptable(self.results)

    @property
    def checks_told(self) -> str:
        """The state of its checks in a few words."""
        if not self.checks:
            return "it has no checks"
        return "its checks pass" if self.passes else "its checks were not run at the end"

    def acceptable(self, results: tuple[CheckResult, ...]) -> bool:
        """True when the required checks pass and none of the others is worse than in the baseline."""
        return acceptable(results, self.baseline, self.required)


class SessionState(Struct, frozen=True):
    """Everything a session's journal amounts to up to `seq` (-1: nothing yet).

    `opening` holds the events before the first task; those after it stand in a run's history. `models` holds who was
    met last for each purpose, `ungrammatical` the endpoints that do not keep to a grammar.
    """

    session: SessionId = NO_SESSION
    repo: str = ""
    base: CommitId = NO_COMMIT
    parent: SessionId | None = None
    parent_seq: int | None = None
    seq: int = -1
    time: str = ""
    hash: str = ""
    config: SessionConfigured | None = None
    opening: tuple[Recorded, ...] = ()
    plan: Plan = field(default_factory=Plan)
    plan_path: str = ""
    models: tuple[tuple[Purpose, ModelFacts], ...] = ()
    ungrammatical: tuple[str, ...] = ()
    trouble: TroubleMet | None = None
    rules: tuple[StoredRule, ...] = ()
    scratchpads: tuple[tuple[TaskId, str], ...] = ()
    run: TaskRun | None = None
    past: tuple[TaskRun, ...] = ()
    prompt: PromptBuilt | None = None
    figures: AnswerFigures = field(default_factory=AnswerFigures)
    left: str = ""

    @property
    def model(self) -> ModelFacts | None:
        """Who answers the executor, or whoever was met first."""
        return self.model_for(Purpose.EXECUTOR) or next((facts for _, facts in self.models), None)

    def model_for(self, purpose: Purpose) -> ModelFacts | None:
        """Return who was met last for `purpose`; nobody of its own means who answers the executor."""
        met = dict(self.models)
        return met.get(purpose, met.get(Purpose.EXECUTOR))

    def scratchpad(self, task: TaskId) -> str:
        """Return the text of a task's scratchpad as it was recorded last."""
        return dict(self.scratchpads).get(task, "")

    def fork_of(self, task: TaskId) -> str:
        """Return which fork's notes are the task's here, empty where it has those that are everybody's."""
        run = self.run_of(task)
        return run.fork if run is not None else ""

    def run_of(self, task: TaskId) -> TaskRun | None:
        """Return the newest run of a task in this session."""
        runs = (*self.past, self.run) if self.run else self.past
        return next((run for run in reversed(runs) if run.task == task), None)

    @property
    def unfinished(self) -> bool:
        """True when a task was started here and is not over."""
        return self.run is not None and self.run.phase is not Phase.OVER
