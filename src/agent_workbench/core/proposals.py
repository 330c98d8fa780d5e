"""What waits at a gate, and what was decided about it."""

from enum import StrEnum
from hashlib import sha256

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import Permission


class Preimage(RecordedValue, frozen=True):
    """What a file held when the proposal was shown: SHA-256 of its bytes, empty when it did not exist."""

    path: str
    sha: str


class SummaryEstimate(RecordedValue, frozen=True):
    """What a summary comes to: tokens of the prompt `before` it (0: not known) and `after` it.

    It stands for what was said through event `through_seq`; what came later stays as it was said.
    """

    before: int
    after: int
    through_seq: int


class HunkFate(StrEnum):
    """What became of a hunk at the gate; `partly`: some of its lines were taken."""

    TAKEN = "taken"
    PARTLY = "partly"
    LEFT = "left"
    EDITED = "edited"


class HunkVerdict(RecordedValue, frozen=True):
    """The decision about one hunk of a diff, and where it stands: its path and the number of its first line.

    `left` are the lines, with their signs, that were not taken of a hunk that was taken partly.
    """

    id: str
    fate: HunkFate
    reason: str = ""
    path: str = ""
    line: int = 0
    left: tuple[str, ...] = ()


class Proposal(RecordedValue, frozen=True):
    """An action at the gate.

    `text` is what was asked for, verbatim: a diff, a command, a commit message, or JSON arguments. `diff` is what
    would be applied or committed, computed by us and shown; only it is carried out. `commands` are what a check runs.
    `special` lists paths that deserve a second look (CI, settings, deletions, renames), `repaired` says in a sentence
    each what was mended in the diff that came.
    `fallback`: the workbench wrote the text, as the model could not. `outlook`: what a summary comes to. `brings`: the
    commits of a merge, each a line. `hunks`: the diff is what the user took of another one, and what became of each of
    that one's hunks.
    """

    id: ProposalId
    kind: Permission
    tool: str
    text: str
    step: int
    diff: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    purpose: CheckPurpose | None = None
    edited: bool = False
    repaired: tuple[str, ...] = ()
    fallback: bool = False
    outlook: SummaryEstimate | None = None
    brings: tuple[str, ...] = ()
    hunks: tuple[HunkVerdict, ...] = ()


TRAILER = "Agent-Journal"
"""What stands in a commit's message before `session:event:hash` of the decision that let it through."""
CHECKS = "checks"
COMMIT = "commit"
MERGE = "merge"
KEEP_CHANGES = "keep_changes"
COMPACT = "compact"
END_UNCHANGED = "end_unchanged"
OURS = frozenset({CHECKS, COMMIT, MERGE, KEEP_CHANGES, COMPACT, END_UNCHANGED})
"""Tools that the workbench itself proposes; they do not count as calls of the model."""


def shown_sha(proposal: Proposal) -> str:
    """Return SHA-256 over what a gate shows of the proposal; an approval names it and counts for nothing else."""
    parts = (proposal.kind, proposal.tool, proposal.text, proposal.diff, *proposal.commands, *proposal.brings)
    told_apart = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()


class Verdict(StrEnum):
    """The answer at a gate."""

    APPROVE = "approve"
    REJECT = "reject"
    SKIP = "skip"
    ABORT = "abort"


POLICY = "policy:"
"""What a decision's `by` begins with where no person decided."""
UNASKED = f"{POLICY}read=auto"
"""Who lets through what only reads: no decision that anybody looks for."""


class ProposalStage(StrEnum):
    """How far a proposal has come; `unknown`: it was started and its outcome was never recorded."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"
    RUNNING = "running"
    FINISHED = "finished"
    UNKNOWN = "unknown"
