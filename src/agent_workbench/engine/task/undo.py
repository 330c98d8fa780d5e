"""Undo of the last applied diff: a checkpoint is taken, the files are reset, and the undo is recorded."""

from asyncio import to_thread

from agent_workbench.core.events import Author, StepUndone, UndoAsked
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.patch.values import Patch
from agent_workbench.core.proposals import COMMIT, MERGE, Verdict
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import last_applied_diff
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.engine.proposals import decide
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.task.execution import take_checkpoint
from agent_workbench.engine.tools.write_diff import SHOWN_LINES

MADE_ON_OTHERS = "the diff before it was taken back, so this was made on files that are no longer so"
END_WORDS = {
    Phase.ROLLING_BACK: "is being rolled back",
    Phase.CLOSING: "is over, it is only being written down",
    Phase.OVER: "is over; its commit is on its own branch, and left alone as long as you do not merge it",
}


def why_not_undo(state: SessionState, wanted: ProposalId | None) -> str:
    """Return why an undo is impossible, empty if it is possible; `wanted` (None: any) must be the last applied diff."""
    run = state.run
    if run is None or (run.phase is Phase.OVER and run.commit is None):
        return "no task is being worked on"
    if run.phase in END_WORDS:
        return f"{run.task} {END_WORDS[run.phase]}"
    if run.undoing is not None:
        return "a diff is being taken back just now"
    if run.gate.running and run.gate.tool in {COMMIT, MERGE}:
        return f"{run.task} is being committed just now"
    last = last_applied_diff(run)
    if last is None:
        return f"no diff of {run.task} is applied"
    return "" if wanted in {None, last.proposal.id} else "another diff was applied meanwhile; look again"


async def ask_undo(session: SessionContext, wanted: ProposalId | None) -> Outcome:
    """Record that the user wants to undo the last diff, or refuse with the reason."""
    last = last_applied_diff(session.state.run) if session.state.run is not None else None
    if (reason := why_not_undo(session.state, wanted)) or last is None:
        return Refused(reason)
    await session.record(UndoAsked(last.proposal.id))
    return Accepted()


async def start_afresh(session: SessionContext, proposal: ProposalId) -> None:
    """Record that the newest diff is to be undone, so that the model tries again from its first prompt."""
    await session.record(UndoAsked(proposal, Author.WORKBENCH))


async def undo_diff(session: SessionContext, proposal: ProposalId) -> None:
    """Reset the files to the state before the diff of `proposal`. A crash anywhere in it is safe: it is repeated."""
    last = last_applied_diff(session.run)
    if last is None or last.proposal.id != proposal:
        raise AssertionError(f"{proposal} is not the diff that was applied last")
    session.publisher.show_activity("taking the diff back")
    waiting = session.run.gate.waiting
    if waiting is not None and waiting.kind is not Permission.SUMMARY:
        await decide(session, waiting, Verdict.REJECT, session.person, MADE_ON_OTHERS)
    workspace = await session.workspace()
    kept = session.run.checkpoint
    # Changes made by hand are in no diff: only a checkpoint keeps them.
    if kept is None or kept.tree != session.run.tree or await workspace.unapproved_changes(session.run.tree):
        await take_checkpoint(session)
    await workspace.reset(last.before)
    # A lost worktree is rebuilt from the last checkpoint.
    await take_checkpoint(session)
    asked = next((each.event for each in reversed(session.run.history) if isinstance(each.event, UndoAsked)), None)
    afresh = asked is not None and asked.by is Author.WORKBENCH
    shown = () if afresh else await to_thread(lambda: lines_before(last.proposal.patch))
    await session.record(StepUndone(proposal, last.proposal.step, last.proposal.paths, last.before, shown, afresh))


def lines_before(patch: Patch) -> tuple[Chunk, ...]:
    """Return the old lines of a patch, hunk by hunk, at most `SHOWN_LINES` of them."""
    found: list[Chunk] = []
    left = SHOWN_LINES
    for file in patch.files:
        for hunk in file.hunks:
            lines = [line.text for line in hunk.old][:left]
            left -= len(lines)
            if lines:
                last = hunk.old_start + len(lines) - 1
                found.append(Chunk(file.old_path, hunk.old_start, last, "\n".join(lines), 0.0))
    return tuple(found)
