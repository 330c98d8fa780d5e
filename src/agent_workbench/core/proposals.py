"""Proposals at the gate, the decisions about them, and the text about a partly approved diff."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

from agent_workbench.core.patch.values import HunkFate
from agent_workbench.core.proposal_kinds import KINDS, Proposal
from agent_workbench.core.proposed_action import (
    ANSWER_SERVER,
    KEEP_CHANGES,
    OFFER_NOTES,
    HunkVerdict,
    Preimage,
    with_patch,
)
from agent_workbench.core.text.sanitizer import WHOLE_CHARS, is_within

__all__ = ["ANSWER_SERVER", "KEEP_CHANGES", "KINDS", "OFFER_NOTES", "HunkVerdict", "Preimage", "Proposal", "with_patch"]

TRAILER = "Agent-Journal"
"""Key of the commit message's trailer; its value is `session:event:hash` of the approval."""
CHECKS = "checks"
COMMIT = "commit"
MERGE = "merge"
COMPACT = "compact"
END_UNCHANGED = "end_unchanged"
PROPOSE_PLAN = "propose_plan"
APPLY_EDITS = "apply_edits"
OURS = frozenset(
    {
        *(ANSWER_SERVER, APPLY_EDITS, CHECKS, COMMIT, MERGE, KEEP_CHANGES, COMPACT, END_UNCHANGED, PROPOSE_PLAN),
        OFFER_NOTES,
    }
)
"""Tools that only the workbench proposes; they do not count as calls of the model."""

MAX_DIFF_LINES = 50_000
"""A longer diff is not shown in full, so it cannot be approved."""


def is_too_long(proposal: Proposal) -> bool:
    """Return True if the proposal has too many lines, or too long ones, to have been shown in full.

    A commit or a merge whose files were all reviewed was shown before, diff by diff.
    """
    if proposal.by_hunk or proposal.unreviewed_paths:
        return _is_cut(proposal.diff, MAX_DIFF_LINES)
    return any(_is_cut(text) for text in (*proposal.texts, *proposal.commands))


@lru_cache(maxsize=2)
def _is_cut(text: str, most_lines: int = sys.maxsize) -> bool:
    if len(text) <= min(most_lines, WHOLE_CHARS):
        return False
    return text.count("\n") > most_lines or not is_within(text, WHOLE_CHARS)


def shown_sha(proposal: Proposal) -> str:
    """Return SHA-256 of everything a gate shows of the proposal. An approval names it and counts for nothing else."""
    shown = (proposal.kind, proposal.tool, proposal.text, proposal.diff, *proposal.commands, *proposal.shown_parts)
    told_apart = "".join(f"{len(part)}:{part}" for part in shown)
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
