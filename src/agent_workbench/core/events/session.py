"""Events of the session itself: start, configuration, models, trouble, end."""

from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.ids import CommitId, ProposalId, SessionId
from agent_workbench.core.model import EndpointChoice, ModelFacts, Purpose
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.workspace import Checkpoint, SandboxFacts, WorkspaceFacts
from agent_workbench.core.settings import ApprovalMode, Approvals, Limits, Permission, Rule
from agent_workbench.core.settings.extensions import ConfiguredHook
from agent_workbench.core.task_routing import RoutingDecision


class SessionStarted(RecordedValue, frozen=True):
    """The session started; line 0 of every journal. `label` is a free name that its caller gave it (empty: none)."""

    session: SessionId
    repo: str
    base: CommitId
    product_version: str
    parent: SessionId | None = None
    parent_seq: int | None = None
    label: str = ""


class SessionForked(RecordedValue, frozen=True):
    """The session was forked: the lines above were copied from the parent up to its event `parent_seq`.

    `workspace` is where the open task continues and `checkpoint` keeps its files; both are None if no task was open.
    The fork of a session that another machine wrote has `arrived`, as one that is resumed.
    """

    product_version: str
    workspace: WorkspaceFacts | None = None
    checkpoint: Checkpoint | None = None
    arrived: bool = False


class SessionConfigured(RecordedValue, frozen=True):
    """The session was configured; recorded at its start and at each resumption.

    `approvals` holds the repo's rules, `own_rules` those that the user stores outside of the repo. `review_context`:
    the first prompt of a task waits until the user sends it. `mode` is the start mode of the user's own settings.
    `hooks` are in the order in which they run.
    """

    approvals: Approvals
    limits: Limits
    tools: tuple[str, ...]
    test_command: str
    lint_command: str
    answer_tokens: int
    answer_seconds: float
    sandbox: SandboxFacts
    headless: bool = False
    own_rules: tuple[StoredRule, ...] = ()
    review_context: bool = False
    mode: ApprovalMode = ApprovalMode.ASK
    hooks: tuple[ConfiguredHook, ...] = ()


class SessionResumed(RecordedValue, frozen=True):
    """The journal was opened again; `torn_bytes` of an unfinished last line were set aside.

    On another machine `repo` and `workspace` are the folders of repository and worktree there (empty: as before), and
    the session has `arrived`: what was approved there and not done yet is asked again.
    """

    torn_bytes: int = 0
    repo: str = ""
    workspace: str = ""
    arrived: bool = False


class SessionLeft(RecordedValue, frozen=True):
    """The user left, or the process was asked to end. The session can be resumed."""

    reason: str


class ModelObserved(RecordedValue, frozen=True):
    """The server for `purpose` reported its facts."""

    facts: ModelFacts
    purpose: Purpose = Purpose.EXECUTOR


class ModelSwitched(RecordedValue, frozen=True):
    """The user switched the task to another model of the server of `endpoint`, or back to the settings (both empty)."""

    endpoint: str = ""
    model: str = ""


class EndpointPassed(RecordedValue, frozen=True):
    """An endpoint of a role could not answer; the next one of the chain is asked."""

    purpose: Purpose
    endpoint: str
    reason: str


class EndpointChosen(RecordedValue, frozen=True):
    """An endpoint of a chain that may cost money was chosen for the prompt; its answer tells tokens and price."""

    purpose: Purpose
    choice: EndpointChoice


class TaskRouted(RecordedValue, frozen=True):
    """The queue gave the session's task to this worker; the decision is what the database said, and proves nothing."""

    decision: RoutingDecision


class GrammarIgnored(RecordedValue, frozen=True):
    """An answer broke the grammar it was asked under. `endpoint` counts as one without grammars from now on."""

    endpoint: str
    step: int
    what: str


class TroubleMet(RecordedValue, frozen=True):
    """An outside failure stopped the work until `RetryAsked`, a resumption, or an abort.

    `lasting`: only a new start with other settings can help.
    """

    source: str
    what: str
    advice: str
    lasting: bool = False


class RetryAsked(RecordedValue, frozen=True):
    """The user asked to retry what failed."""


class ApprovalChanged(RecordedValue, frozen=True):
    """The user added an approval rule, or revoked it (not `always`); it was written to `kept` before.

    Older versions recorded no rule: then a whole kind was switched to auto, or back, for the session.
    """

    kind: Permission
    always: bool
    rule: Rule | None = None
    kept: RuleScope = RuleScope.SESSION


class ModeChanged(RecordedValue, frozen=True):
    """The approval mode was changed; `approved` is what the mode before it approved, one line for each proposal.

    `covers` is the proposal that waited and that the mode may approve, because the user said so.
    """

    mode: ApprovalMode
    approved: tuple[str, ...] = ()
    covers: ProposalId | None = None
