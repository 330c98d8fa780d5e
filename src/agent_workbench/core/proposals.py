"""Proposals at the gate, the decisions about them, and the text about a partly approved diff."""

import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from hashlib import sha256

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.patch.values import OWN_BOUNDS, HunkFate, Patch
from agent_workbench.core.plan.proposed import ProposedPlan
from agent_workbench.core.playbooks.access import PlaybookRun
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.sanitizer import WHOLE_CHARS, is_within


class Preimage(RecordedValue, frozen=True):
    """Content of a file when the proposal was shown: SHA-256 of its bytes, empty if it did not exist."""

    path: str
    sha: str


class SummaryEstimate(RecordedValue, frozen=True):
    """Estimated effect of a summary: tokens of the prompt `before` (0: unknown) and `after` it.

    The summary replaces the steps up to event `through_seq`; later ones stay as they are.
    """

    before: int
    after: int
    through_seq: int


class HunkVerdict(RecordedValue, frozen=True):
    """Decision about one hunk of a diff, and its position: path and number of its first line.

    `left` are the lines, with their signs, that were left out of a partly taken hunk.
    """

    id: str
    fate: HunkFate
    reason: str = ""
    path: str = ""
    line: int = 0
    left: tuple[str, ...] = ()


class SimilarNote(RecordedValue, frozen=True):
    """An existing note that a proposed one (`path`) repeats: its path and the beginning of its text."""

    path: str
    existing: str
    text: str


class Proposal(RecordedValue, frozen=True, dict=True):
    """An action at the gate.

    `text` is the model's request, verbatim: a diff, a command, a commit message, or JSON arguments. `diff` is what
    would be applied or committed, computed by the workbench and shown; only it is carried out. `commands` are those of
    a check. `special` lists paths that need a second look (CI, settings, deletions, renames). `repaired` says, one
    sentence each, what was repaired in the model's diff.

    `fallback`: the workbench wrote the text because the model could not. `outlook`: the estimated effect of a summary.
    `brings`: the commits of a merge, one line each; `method` is one of its `methods` (None in journals of 0.1: a
    fast-forward where possible, else a merge commit). `reviewed`: the paths of a commit or merge whose change is
    exactly what the user approved before (`core.state.reviewed_files`); None: unknown. `hunks`: the diff is the
    user's selection from another one, with the outcome of each of its hunks. `left_out`: what the user's own git would
    do at this commit or merge, and the workbench does not.

    Where the call is of a source's tool: `source` names it, `spec` is the digest of its spec, and `hints` are what the
    source says of the tool, which nobody verified.

    `plan`: the tasks that the model proposed; `text` is the YAML of the taken ones. `similar`: notes that the proposed
    ones repeat; `origins` say where these come from. `playbook`: the run of a playbook, with what it may use.
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
    source: str = ""
    spec: str = ""
    hints: tuple[str, ...] = ()
    method: MergeMethod | None = None
    methods: tuple[MergeMethod, ...] = ()
    reviewed: tuple[str, ...] | None = None
    plan: ProposedPlan | None = None
    similar: tuple[SimilarNote, ...] = ()
    origins: tuple[str, ...] = ()
    playbook: PlaybookRun | None = None
    left_out: str = ""

    @cached_property
    def patch(self) -> Patch:
        """The parsed `diff`. It is not recorded: parsed once after a journal is read, and given by `with_patch` else.

        Raises `PatchError` if `diff` is not a diff, as in a proposal of another kind.
        """
        from agent_workbench.core.patch.reader.patch_reader import parse_patch  # not every start needs it

        return parse_patch(self.diff, OWN_BOUNDS)


def with_patch(proposal: Proposal, patch: Patch) -> Proposal:
    """Return the proposal with the parsed `patch`; its text becomes the `diff` and is not parsed again."""
    proposal.__dict__["patch"] = patch
    return proposal


TRAILER = "Agent-Journal"
"""Key of the commit message's trailer; its value is `session:event:hash` of the approval."""
CHECKS = "checks"
COMMIT = "commit"
MERGE = "merge"
KEEP_CHANGES = "keep_changes"
COMPACT = "compact"
END_UNCHANGED = "end_unchanged"
PROPOSE_PLAN = "propose_plan"
OFFER_NOTES = "offer_notes"
APPLY_EDITS = "apply_edits"
ANSWER_SERVER = "answer_server"
OURS = frozenset(
    {
        *(ANSWER_SERVER, APPLY_EDITS, CHECKS, COMMIT, MERGE, KEEP_CHANGES, COMPACT, END_UNCHANGED, PROPOSE_PLAN),
        OFFER_NOTES,
    }
)
"""Tools that only the workbench proposes; they do not count as calls of the model."""


BY_HUNK = frozenset({Permission.DIFF, Permission.KNOWLEDGE})
"""Kinds of proposals that are a diff of files, of which the user may leave hunks out."""

_GAP = re.compile(r'^ *"(?:[^"\\]|\\.)*": null,?$', re.MULTILINE)
MAX_DIFF_LINES = 50_000
"""A longer diff is not shown in full, so it cannot be approved."""


def is_too_long(proposal: Proposal) -> bool:
    """Return True if the proposal has too many lines, or too long ones, to have been shown in full.

    A commit or a merge whose files were all reviewed was shown before, diff by diff.
    """
    if proposal.kind in BY_HUNK or unreviewed_paths(proposal):
        return _is_cut(proposal.diff, MAX_DIFF_LINES)
    shown = proposal.playbook.shown if proposal.playbook is not None else ()
    return any(_is_cut(text) for text in (proposal.text, *proposal.commands, *shown))


@lru_cache(maxsize=2)
def _is_cut(text: str, most_lines: int = sys.maxsize) -> bool:
    if len(text) <= min(most_lines, WHOLE_CHARS):
        return False
    return text.count("\n") > most_lines or not is_within(text, WHOLE_CHARS)


def has_gaps(proposal: Proposal) -> bool:
    """Return True if the answer to a server's question lacks a value, so that it cannot be approved yet.

    `null` stands for the value that a person has to fill in: no form of the protocol takes it.
    """
    return proposal.tool == ANSWER_SERVER and bool(_GAP.search(proposal.text))


def unreviewed_paths(proposal: Proposal) -> tuple[str, ...]:
    """Return the paths of a commit or merge that are not exactly as the user approved them; none if unknown."""
    if proposal.reviewed is None:
        return ()
    reviewed = frozenset(proposal.reviewed)
    return tuple(path for path in proposal.paths if path not in reviewed)


def shown_sha(proposal: Proposal) -> str:
    """Return SHA-256 of everything a gate shows of the proposal. An approval names it and counts for nothing else."""
    parts = (proposal.kind, proposal.tool, proposal.text, proposal.diff, *proposal.commands, *proposal.brings)
    if proposal.method is not None:
        parts += ("method", proposal.method)
    if proposal.left_out:
        parts += ("left out", proposal.left_out)
    if proposal.source:
        parts += ("source", proposal.source, proposal.spec, *proposal.hints)
    if proposal.reviewed is not None:
        parts += ("reviewed", *proposal.reviewed)
    parts += tuple(part for each in proposal.similar for part in ("similar", each.path, each.existing, each.text))
    parts += tuple(part for each in proposal.origins for part in ("origin", each))
    if proposal.plan is not None:
        parts += ("plan", "replace" if proposal.plan.replaces else "rest" if proposal.plan.rest else "append")
    if proposal.playbook is not None:
        parts += ("playbook", *proposal.playbook.shown)
    told_apart = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()


class Verdict(StrEnum):
    """Answer at a gate."""

    APPROVE = "approve"
    REJECT = "reject"
    SKIP = "skip"
    ABORT = "abort"

    @property
    def past(self) -> str:
        """The verdict as a past participle, such as `skipped`."""
        return {Verdict.SKIP: "skipped", Verdict.APPROVE: "approved"}.get(self, f"{self}ed")


USER = "user"
"""Value of a decision's `by` if a person decided in a front end of ours."""
ACP = "acp:"
"""Prefix of a decision's `by` if a person decided in an editor, whose name follows."""
POLICY = "policy:"
"""Prefix of a decision's `by` if no person decided."""
UNASKED = f"{POLICY}read=auto"
"""Value of `by` for automatically approved reads, which reports leave out."""


def is_person(by: str) -> bool:
    """Return True if the `by` of a decision is that of a person."""
    return by == USER or by.startswith(ACP)


class ProposalStage(StrEnum):
    """Stage of a proposal. `unknown`: it was started, but no outcome was recorded."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"
    RUNNING = "running"
    FINISHED = "finished"
    UNKNOWN = "unknown"


def hunk_choice_summary(hunks: Sequence[HunkVerdict]) -> str:
    """Return a summary such as `took 2 of 3 hunks, 1 of them in part`."""
    partly = sum(hunk.fate is HunkFate.PARTLY for hunk in hunks)
    taken = sum(hunk.fate is not HunkFate.LEFT for hunk in hunks)
    of_them = "" if not partly else " in part" if partly == taken else f", {partly} of them in part"
    return f"took {taken} of {len(hunks)} hunk{'' if len(hunks) == 1 else 's'}{of_them}"


def describe_hunk_choice(hunks: Sequence[HunkVerdict]) -> str:
    """Return in one line how much was taken, what was left out, and why."""
    return "; ".join((hunk_choice_summary(hunks), *map(describe_left_out, left_out_hunks(hunks))))


def left_out_hunks(hunks: Sequence[HunkVerdict]) -> tuple[HunkVerdict, ...]:
    """Return the hunks that were left out, in whole or in part."""
    return tuple(hunk for hunk in hunks if hunk.fate in {HunkFate.LEFT, HunkFate.PARTLY})


def hunk_location(hunk: HunkVerdict) -> str:
    """Return a hunk's location as `path:line`, or the path alone if it has no lines."""
    return f"{hunk.path}:{hunk.line}" if hunk.line else hunk.path


def describe_left_out(hunk: HunkVerdict) -> str:
    """Return in one line what was left out of a hunk and why."""
    what = f"{len(hunk.left)} line{'' if len(hunk.left) == 1 else 's'} left out" if hunk.left else "left out"
    return f"{hunk_location(hunk)} {what}{f': {hunk.reason}' if hunk.reason else ''}"


def needs_special(proposal: Proposal) -> bool:
    """Return True if an approval of all of it also has to name its unusual files or commands."""
    return bool(proposal.special) and (proposal.kind is Permission.DIFF or proposal.plan is not None)
