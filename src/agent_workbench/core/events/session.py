"""The session's own events: beginning, configuration, who answers, trouble, leaving."""

from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.model import ModelFacts, Purpose
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.rules.matching import RuleScope, StoredRule
from agent_workbench.core.settings import Approvals, Limits, Permission, Rule
from agent_workbench.core.workspace import Checkpoint, SandboxFacts, WorkspaceFacts


class SessionStarted(RecordedValue, frozen=True):
    """Line 0 of every journal."""

    session: SessionId
    repo: str
    base: CommitId
    product_version: str
    parent: SessionId | None = None
    parent_seq: int | None = None


class SessionForked(RecordedValue, frozen=True):
    """The lines before this one were copied from the parent, up to its event `parent_seq`; here the own ones begin.

    `workspace` is where the open task goes on and `checkpoint` keeps the files it goes on from; None: no task was open.
    """

    product_version: str
    workspace: WorkspaceFacts | None = None
    checkpoint: Checkpoint | None = None


class SessionConfigured(RecordedValue, frozen=True):
    """What this session was set to do; recorded at its start and at each resumption.

    The repo's rules stand in `approvals`, `own_rules` are those that the user keeps outside of it.
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


class SessionResumed(RecordedValue, frozen=True):
    """The journal was opened again; `torn_bytes` of an unfinished last line were set aside."""

    torn_bytes: int = 0


class SessionLeft(RecordedValue, frozen=True):
    """The user left, or the process was asked to end; the work can be taken up again."""

    reason: str


class ModelObserved(RecordedValue, frozen=True):
    """The server that answers for `purpose` introduced itself."""

    facts: ModelFacts
    purpose: Purpose = Purpose.EXECUTOR


class EndpointPassed(RecordedValue, frozen=True):
    """An endpoint of a role could not answer, and why; the next one of its chain is asked."""

    purpose: Purpose
    endpoint: str
    reason: str


class GrammarIgnored(RecordedValue, frozen=True):
    """An answer did not fit the grammar it was asked under: `endpoint` is treated as one without from now on."""

    endpoint: str
    step: int
    what: str


class TroubleMet(RecordedValue, frozen=True):
    """Something outside stopped the work; it waits for `RetryAsked`, a resumption, or an abort.

    `lasting`: only a new start, with other settings, can help.
    """

    source: str
    what: str
    advice: str
    lasting: bool = False


class RetryAsked(RecordedValue, frozen=True):
    """The user wants what failed to be tried again."""


class ApprovalChanged(RecordedValue, frozen=True):
    """The user kept a rule, or (not `always`) revoked one; it was written where it is `kept` before this.

    Without a rule, as former versions recorded it, a whole kind of gate was opened or closed for the session.
    """

    kind: Permission
    always: bool
    rule: Rule | None = None
    kept: RuleScope = RuleScope.SESSION
