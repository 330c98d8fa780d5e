"""State of a session: the fold of its events, from which panes, prompts and reports are made."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.approval_rules import ActiveMode, StoredRule
from agent_workbench.core.checks.judges import Judges, excused_suite
from agent_workbench.core.checks.results import CheckPurpose, CheckResult, acceptable
from agent_workbench.core.events import (
    FAILING_FIRST,
    ModelSwitched,
    PromptBuilt,
    Recorded,
    SessionConfigured,
    SkillsChosen,
    TaskStarted,
    TroubleMet,
)
from agent_workbench.core.hook_answers import HookRun
from agent_workbench.core.ids import NO_SESSION, CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.repo.workspace import Checkpoint, MergeOutcome, ResourceUse, WorkspaceFacts
from agent_workbench.core.settings import ApprovalMode, Permission
from agent_workbench.core.state.growing_tuple import JoinedSequence
from agent_workbench.core.state.prompt_reads import PromptReads
from agent_workbench.core.state.work import Chat, Consultation, Gate, ModelConversation, NoteOffer, Planning
from agent_workbench.core.task_routing import RoutingDecision
from agent_workbench.core.text.commit_subjects import CommitConvention
from agent_workbench.core.tools.spec import ToolSpec

NO_COMMIT = CommitId("")
NAMED_TESTS = 3
"""Number of failing tests that a line about the checks names."""
MOST_VAIN = 4
"""Number of failed attempts from one that is kept: a small model writes what it reads there again."""


class Phase(StrEnum):
    """Phase of a task's run. With the open proposal it determines the next move."""

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
"""Phases after the end of a task; the user can no longer steer it."""


class TaskRun(ModelConversation, frozen=True):
    """One task being worked on in one workspace.

    `tree` is the git tree of everything approved so far, `checked_tree` the one of the last checks. `working_seconds`
    counts answers and actions, not the time at gates; `resources` is what the commands of its actions used. `reads`
    sums up the prompt tokens read; `last_figures` are those of the last prompt, limited to what the next one begins
    with.

    `kept_tree` is the tree after the newest attempt that is kept although it fails, `kept_results` those of its checks:
    later attempts begin there, until `MOST_VAIN` of them failed too.

    `approved_checks` are the commands of the checks that the user approved last. `skills` is the newest choice of
    skills, None if none was recorded.

    `compacts_for` is the phase to return to after a compaction. `compaction_asked`: the user asked for an optional one.
    `notes_full`: the compaction is about the scratchpad; `notes_settled` is its length when that was last decided.
    `undoing` is the proposal whose diff is to be undone. `paused`: the model is not asked. `finish_returned`: a finish
    without changes was sent back to the model. `judge_attempts` counts answers that tried to change a judge.
    `failures` counts consecutive failed steps, `reflected` those before the newest reflexion. `fork` is the suffix of
    the session that took the run over from its parent, empty if it began here. `reviewed` is the newest tree of which a
    consultant was asked for a review. `switched` is the model that the user chose for the task, None for that of the
    settings.
    """

    task: TaskId
    definition: Task
    workspace: WorkspaceFacts
    checks: tuple[str, ...]
    required: int
    skills: SkillsChosen | None = None
    commit_convention: CommitConvention = CommitConvention.NONE
    phase: Phase = Phase.BASELINE
    tree: str = ""
    checked_tree: str = ""
    baseline: tuple[CheckResult, ...] | None = None
    results: tuple[CheckResult, ...] | None = None
    kept_tree: str = ""
    kept_results: tuple[CheckResult, ...] = ()
    approved_checks: tuple[str, ...] = ()
    check_purpose: CheckPurpose = CheckPurpose.AFTER_DIFF
    tool_calls: int = 0
    failures: int = 0
    reflected: int = 0
    reflexions: int = 0
    working_seconds: float = 0.0
    resources: ResourceUse | None = None
    reads: PromptReads = field(default_factory=PromptReads)
    last_figures: AnswerFigures | None = None
    compactions: int = 0
    compacts_for: Phase = Phase.STEPPING
    compaction_asked: bool = False
    notes_full: bool = False
    notes_settled: int = 0
    undoing: ProposalId | None = None
    paused: bool = False
    finish_returned: bool = False
    judge_attempts: int = 0
    reviewed: str = ""
    switched: ModelSwitched | None = None
    checkpoint: Checkpoint | None = None
    fork: str = ""
    commit: CommitId | None = None
    merged: MergeOutcome | None = None
    status: TaskStatus | None = None
    reason: str = ""

    @property
    def wording(self) -> int:
        """Version of words, flow and forms of answers of this run (`TaskStarted.wording`)."""
        started = self.started
        return started.wording if started is not None else 0

    @property
    def started(self) -> TaskStarted | None:
        """The event that the run began with."""
        first = self.history[0].event if self.history else None
        return first if isinstance(first, TaskStarted) else None

    @property
    def judges(self) -> Judges:
        """The files that decide whether the task is done; none for versions before `FAILING_FIRST`."""
        started = self.started if self.wording >= FAILING_FIRST and not self.definition.edits else None
        paths, required = (started.judges, self.checks[: self.required]) if started is not None else ((), ())
        return Judges(self.definition, paths, required, self.baseline)

    @property
    def failed_before(self) -> bool:
        """True if an acceptance command is known to have failed before any change: the task is to make it pass."""
        baseline = self.baseline or ()
        return any(each.command in self.checks[: self.required] and not each.passed for each in baseline)

    @property
    def kept_in_vain(self) -> bool:
        """True if the attempt that is kept was built on so often without success that it is given up as well."""
        return bool(self.kept_tree) and self.failures >= MOST_VAIN

    @property
    def attempt_base(self) -> str:
        """The tree that an attempt begins with, and goes back to if it is given up."""
        return self.workspace.tree if self.kept_in_vain else self.kept_tree or self.workspace.tree

    @property
    def tries_afresh(self) -> bool:
        """True if an attempt that fails is given up, and the model asked again: a failing check alone is to pass."""
        return self.wording >= FAILING_FIRST and self.failed_before

    @property
    def open(self) -> bool:
        """True until the task is over, and while its merge is at the gate."""
        return self.phase is not Phase.OVER or self.undoing is not None or self.gate.open

    @property
    def merging(self) -> bool:
        """True from the approval of a merge to its end. A merge is never aborted halfway."""
        return self.gate.begun is not None and self.gate.begun.kind is Permission.MERGE

    @property
    def held(self) -> bool:
        """True if only the user's pause keeps the model from being asked."""
        asks = self.phase in {Phase.STEPPING, Phase.REFLECTING, Phase.COMPACTING}
        return self.paused and asks and not self.gate.open and self.answer is None and self.undoing is None

    @property
    def awaits_send(self) -> bool:
        """True if the first prompt waits until the user sends it."""
        return self.held and self.step == 0

    def known_parts(self, purpose: Purpose) -> int:
        """Return how many parts the next prompt shares with the previous one; a prompt about notes shares none."""
        return 0 if self.notes_full and purpose is Purpose.SUMMARY else self.prompt_parts

    @property
    def changed(self) -> bool:
        """True if the approved content differs from the base."""
        return self.tree != self.workspace.tree

    @property
    def passes(self) -> bool:
        """True if the last checks ran on exactly the approved content and are acceptable."""
        return self.results is not None and self.checked_tree == self.tree and self.acceptable(self.results)

    @property
    def shown_to_pass(self) -> bool:
        """True if it has checks, and they passed on exactly the approved content."""
        return bool(self.checks) and self.passes

    @property
    def checks_text(self) -> str:
        """State of the checks in a few words."""
        if not self.checks:
            return "it has no checks"
        if old := self.old_failures:
            more = f" and {len(old) - NAMED_TESTS} more" if len(old) > NAMED_TESTS else ""
            return f"{', '.join(old[:NAMED_TESTS])}{more} failed before it and still {'fail' if old[1:] else 'fails'}"
        return "its checks pass" if self.passes else "its checks were not run at the end"

    def with_notes_settled(self, chars: int) -> "TaskRun":
        """Return the run in its former phase; a scratchpad of `chars` characters is not summarised again."""
        return replace(self, phase=self.compacts_for, notes_full=False, notes_settled=chars)

    def acceptable(self, results: tuple[CheckResult, ...]) -> bool:
        """Return True if the required checks pass and none of the others is worse than in the baseline."""
        return acceptable(results, self.baseline, self.required, self._excused)

    @property
    def _excused(self) -> tuple[str, ...]:
        started = self.started
        if started is None or started.wording < FAILING_FIRST:
            return ()
        return excused_suite(self.definition, started.suite, self.baseline)

    @property
    def old_failures(self) -> tuple[str, ...]:
        """The tests of its acceptance that failed before the task and still fail, if nothing else does."""
        if not self.passes or self.wording < FAILING_FIRST:
            return ()
        return tuple(test for each in (self.results or ())[: self.required] for test in each.failed_tests)


class SessionState(Struct, frozen=True):
    """State of a session after event `seq` (-1: before the first).

    `label` is the free name that the session was opened under. `main` is the run of the newest task, or the chat of a
    session that works on no task and makes no plan; `past` are the earlier runs. `opening` holds the events before
    these; later ones are in their histories. `planning` and `note_offer` are the newest ones, beside `main` (`work`
    says which is open). `hook_runs` are those for proposals that wait. `models` holds the last observed model of each
    purpose, `ungrammatical` the endpoints that ignore a grammar. `routed` says why the newest worker got the session's
    task.
    """

    session: SessionId = NO_SESSION
    repo: str = ""
    base: CommitId = NO_COMMIT
    parent: SessionId | None = None
    parent_seq: int | None = None
    label: str = ""
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
    mode: ActiveMode = field(default_factory=ActiveMode)
    scratchpads: tuple[tuple[TaskId, str], ...] = ()
    main: TaskRun | Chat | None = None
    past: tuple[TaskRun, ...] = ()
    planning: Planning | None = None
    consultations: tuple[Consultation, ...] = ()
    note_offer: NoteOffer | None = None
    hook_runs: tuple[HookRun, ...] = ()
    prompt: PromptBuilt | None = None
    figures: AnswerFigures = field(default_factory=AnswerFigures)
    left: str = ""
    routed: RoutingDecision | None = None

    @property
    def model(self) -> ModelFacts | None:
        """Facts of the executor's model, or of the first one observed."""
        return self.model_for(Purpose.EXECUTOR) or next((facts for _, facts in self.models), None)

    def model_for(self, purpose: Purpose) -> ModelFacts | None:
        """Return the last observed model for `purpose`; the executor's if it has none of its own."""
        met = dict(self.models)
        return met.get(purpose, met.get(Purpose.EXECUTOR))

    @property
    def switched(self) -> ModelSwitched | None:
        """The model that the user chose for the unfinished task, None for that of the settings."""
        return self.run.switched if self.run is not None and self.unfinished else None

    def scratchpad(self, task: TaskId) -> str:
        """Return the recorded text of a task's scratchpad."""
        return dict(self.scratchpads).get(task, "")

    def fork_of(self, task: TaskId) -> str:
        """Return the suffix of the fork that owns the task's notes here; empty if they are shared by all."""
        run = self.run_of(task)
        return run.fork if run is not None else ""

    def run_of(self, task: TaskId) -> TaskRun | None:
        """Return the newest run of a task in this session."""
        return next((run for run in reversed(self.runs) if run.task == task), None)

    @property
    def run(self) -> TaskRun | None:
        """The run of the newest task, None before the first one and in a chat."""
        return self.main if isinstance(self.main, TaskRun) else None

    @property
    def in_chat(self) -> bool:
        """True for a chat: the session works on no task and makes no plan."""
        return isinstance(self.main, Chat)

    @property
    def runs(self) -> tuple[TaskRun, ...]:
        """The runs of all tasks of the session, oldest first."""
        return (*self.past, self.main) if isinstance(self.main, TaskRun) else self.past

    @property
    def conversations(self) -> tuple[TaskRun | Chat, ...]:
        """The runs of all tasks, oldest first, or the chat."""
        return (*self.past, self.main) if self.main is not None else ()

    @property
    def run_at_gate(self) -> TaskRun | None:
        """The run to which the gate belongs, None for a call of a chat, a plan and offered notes."""
        return self.run if self.run is not None and self.gate is self.run.gate else None

    @property
    def takes_words(self) -> bool:
        """True if what the user says goes to the model: in a chat, and while a task is worked on."""
        return self.in_chat or self.unfinished

    @property
    def reviews_context(self) -> bool:
        """True if the first prompt of a task waits until the user sends it; never in *accept until done*."""
        until_done = self.mode.mode is ApprovalMode.ACCEPT_UNTIL_DONE
        return self.config is not None and self.config.review_context and not until_done

    @property
    def unfinished(self) -> bool:
        """True if a task was started here and is not over."""
        return self.run is not None and self.run.phase is not Phase.OVER

    @property
    def open_planning(self) -> Planning | None:
        """The planning that goes on, None if there is none. No task is unfinished then."""
        return self.planning if self.planning is not None and self.planning.open else None

    @property
    def open_note_offer(self) -> NoteOffer | None:
        """The offer of notes that is not decided, None if there is none."""
        return self.note_offer if self.note_offer is not None and self.note_offer.open else None

    @property
    def work(self) -> TaskRun | Chat | Planning | NoteOffer | None:
        """The open work: a planning, else the task or the message of the chat, else an offer of notes.

        Where nothing is open it is the newest task's run or the chat.
        """
        if self.open_planning is not None:
            return self.open_planning
        return self.main if self.main is not None and self.main.open else self.open_note_offer or self.main

    @property
    def gate(self) -> Gate:
        """The gate of the open work. Offered notes that wait there already stay while a message or a task goes on."""
        work, offer = self.work, self.open_note_offer
        if work is None:
            return Gate()
        beside = offer is not None and offer.gate.waiting is not None and not isinstance(work, Planning)
        return offer.gate if offer is not None and beside and work.gate.waiting is None else work.gate

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits at the gate, None if there is none."""
        return self.gate.waiting

    @property
    def at_work(self) -> bool:
        """True if a task, a planning or an offer of notes is not over, or a message of the chat has no reply."""
        due = isinstance(self.main, Chat) and self.main.due
        return due or self.unfinished or self.open_planning is not None or self.open_note_offer is not None

    @property
    def step(self) -> int:
        """Number of the step of the chat or of the run, 0 without one."""
        return self.main.step if self.main is not None else 0

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools of the chat or of the run."""
        return self.main.specs if self.main is not None else ()

    @property
    def events(self) -> Sequence[Recorded]:
        """All events of the session."""
        return JoinedSequence((self.opening, *(each.history for each in self.conversations)))

    @property
    def latest_events(self) -> Sequence[Recorded]:
        """Events since the chat or the newest run started, or all of them without one."""
        return self.main.history if self.main is not None else self.opening
