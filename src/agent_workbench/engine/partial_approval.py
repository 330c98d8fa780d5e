"""Partial approval: the hunks and lines that the user takes replace the proposed diff, and are approved."""

from asyncio import to_thread
from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.events import Author, ProposalReplaced
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.intents import ApproveProposal
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.patch.diff_text import canonical_patch, render_patch
from agent_workbench.core.patch.paths import special_paths
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import FilePatch, Hunk, HunkFate, LeftOut, Patch, file_id, patch_hash
from agent_workbench.core.proposals import (
    HunkVerdict,
    Proposal,
    Verdict,
    describe_left_out,
    hunk_choice_summary,
    left_out_hunks,
    with_patch,
)
from agent_workbench.core.proposed_action import FileChanges
from agent_workbench.engine.proposals import decide, refuse_if_redacted
from agent_workbench.engine.runtime.session_context import SessionContext

Changes = TypeVar("Changes", bound=FileChanges)
NOTHING_TAKEN = "nothing of it was taken"


async def take_part(
    session: SessionContext, waiting: Proposal, intent: ApproveProposal, decision: InboxDecision | None = None
) -> Outcome:
    """Approve the rest of a diff, if it is the text that was shown; reject the diff if nothing is left of it."""
    by = session.person if decision is None else decision.by
    if not isinstance(waiting, FileChanges):
        return Refused("only of a diff something can be left out")
    try:
        patch = await to_thread(lambda: waiting.patch)
    except PatchError as error:
        return Refused(f"this diff has no hunks to choose from: {error}")
    rest = await to_thread(_without, patch, intent)
    if rest is None:
        return Refused("the diff changed after it was shown; look again")
    hunks = verdicts(patch, intent.left, HunkFate.EDITED if waiting.edited else HunkFate.TAKEN)
    if not rest.files:
        await decide(session, waiting, Verdict.REJECT, by, _why_nothing(hunks), hunks, decision)
        return Accepted()
    taken = part_of(waiting, rest, hunks)
    await session.record(ProposalReplaced(taken, hunk_choice_summary(taken.hunks), Author.USER))
    await refuse_if_redacted(session, taken)
    if session.state.waiting is not None:
        await decide(session, session.state.waiting, Verdict.APPROVE, by, decision=decision)
    return Accepted()


def _without(patch: Patch, intent: ApproveProposal) -> Patch | None:
    """Return the patch without the parts that were left out, None if its text is not the one that was shown."""
    try:
        rest = leave_out(patch, intent.left)
    except PatchError:
        return None
    return rest if patch_hash(render_patch(rest)) == intent.result_sha else None


def part_of(proposal: Changes, rest: Patch, hunks: tuple[HunkVerdict, ...]) -> Changes:
    """Return the proposal with `rest` as its diff; hunks that were left out before stay on record."""
    paths = rest.paths
    part = replace(
        proposal,
        diff=render_patch(rest),
        paths=paths,
        special=special_paths(rest, proposal.special),
        preimages=tuple(each for each in proposal.preimages if each.path in paths),
        hunks=(*left_out_hunks(proposal.hunks), *hunks),
    )
    return with_patch(part, canonical_patch(rest))


def verdicts(patch: Patch, left: tuple[LeftOut, ...], taken: HunkFate) -> tuple[HunkVerdict, ...]:
    """Return the decision about each hunk, and each file without hunks; those that are not `left` get `taken`."""
    chosen = {each.id: each for each in left}
    return tuple(verdict for file in patch.files for verdict in _of_file(file, chosen, taken))


def _of_file(file: FilePatch, chosen: Mapping[str, LeftOut], taken: HunkFate) -> Iterator[HunkVerdict]:
    if not file.hunks:
        whole = chosen.get(name := file_id(file))
        yield HunkVerdict(name, HunkFate.LEFT if whole else taken, whole.reason if whole else "", file.path)
    for hunk in file.hunks:
        yield _of_hunk(file, hunk, chosen.get(hunk.id), taken)


def _of_hunk(file: FilePatch, hunk: Hunk, left: LeftOut | None, taken: HunkFate) -> HunkVerdict:
    changed = hunk.changes
    line = max(1, hunk.old_start + changed[0]) if changed else hunk.old_start
    if left is None:
        return HunkVerdict(hunk.id, taken, "", file.path, line)
    if not left.lines or set(changed) <= set(left.lines):
        return HunkVerdict(hunk.id, HunkFate.LEFT, left.reason, file.path, line)
    lines = tuple(f"{hunk.lines[number].kind}{hunk.lines[number].text}" for number in sorted(set(left.lines)))
    return HunkVerdict(hunk.id, HunkFate.PARTLY, left.reason, file.path, line, lines)


def _why_nothing(hunks: tuple[HunkVerdict, ...]) -> str:
    """Return the reason for the rejection of the whole diff: the only one, or each with its position."""
    given = {hunk.reason for hunk in hunks}
    if len(given) == 1:
        return given.pop() or NOTHING_TAKEN
    return "; ".join(describe_left_out(hunk) for hunk in hunks if hunk.reason)
