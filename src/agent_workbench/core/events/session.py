"""The session's own events: beginning, configuration, who answers, trouble, leaving."""

from dataclasses import dataclass

from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.model import ModelFacts, Purpose
from agent_workbench.core.rules import Keeping, KeptRule
from agent_workbench.core.settings import Approvals, GateKind, Limits, Rule
from agent_workbench.core.workspace import Checkpoint, SandboxFacts, WorkspaceFacts


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
class SessionForked:
    """The lines before this one were copied from the parent, up to its event `parent_seq`; here the own ones begin.

    `workspace` is where the open task goes on and `checkpoint` keeps the files it goes on from; None: no task was open.
    """

    product_version: str
    workspace: WorkspaceFacts | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class SessionConfigured:
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
    own_rules: tuple[KeptRule, ...] = ()


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
    """The server that answers for `purpose` introduced itself."""

    facts: ModelFacts
    purpose: Purpose = Purpose.EXECUTOR


@dataclass(frozen=True, slots=True)
class EndpointPassed:
    """An endpoint of a role could not answer, and why; the next one of its chain is asked."""

    purpose: Purpose
    endpoint: str
    reason: str


@dataclass(frozen=True, slots=True)
class GrammarIgnored:
    """An answer did not fit the grammar it was asked under: `endpoint` is treated as one without from now on."""

    endpoint: str
    step: int
    what: str


@dataclass(frozen=True, slots=True)
class TroubleMet:
    """Something outside stopped the work; it waits for `RetryAsked`, a resumption, or an abort.

    `lasting`: only a new start, with other settings, can help.
    """

    source: str
    what: str
    advice: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """The user wants what failed to be tried again."""


@dataclass(frozen=True, slots=True)
class ApprovalChanged:
    """The user kept a rule, or (not `always`) revoked one; it was written where it is `kept` before this.

    Without a rule, as former versions recorded it, a whole kind of gate was opened or closed for the session.
    """

    kind: GateKind
    always: bool
    rule: Rule | None = None
    kept: Keeping = Keeping.SESSION
