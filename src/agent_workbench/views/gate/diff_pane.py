"""The diff pane: the waiting proposal in full, a running command, a streamed diff, or the last applied one."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from agent_workbench.core.live import LeftRunning, SessionUpdate
from agent_workbench.core.patch.comparison import shared_blocks
from agent_workbench.core.patch.rewritten_pieces import read_unfinished
from agent_workbench.core.proposals import (
    Proposal,
)
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.file_pieces import OfferedPieces, meant_piece, offered_pieces
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.gate.proposal_views import DiffView, proposal_key, view_proposal
from agent_workbench.views.transcript_blocks import EDITS, split_answer

OUTPUT_LINES = 120
"""Maximum number of lines of running output, because every update lays out all of them."""

MOST_SKIPPED = 20
"""Old lines that the new text may be ahead of; a bare bracket that matches far below would make all between deleted."""


def view_diff(update: SessionUpdate, pieces: Callable[[TaskRun], OfferedPieces] = offered_pieces) -> DiffView:
    """Return the content of the diff pane. `pieces` are those that the model of a run may rewrite."""
    run, waiting = update.state.run, update.state.waiting
    if waiting is not None:
        view = view_proposal(update.state, waiting)
        return view if update.live.replay is None else replace(view, by_hunk=False)
    if update.live.running is not None:
        return _running(update)
    # The streamed diff stays visible while its hunks are being placed.
    streaming = update.live.streaming
    written = streaming or (run.answer if run is not None else None)
    if written is not None:
        parts = split_answer(written.text)
        word = "being written" if streaming is not None else "being checked"
        if parts.action in EDITS:
            rewrites = parts.action == REWRITE and run is not None
            diff = streamed_diff(pieces(run), parts.body) if run is not None and rewrites else parts.body
            return DiffView(f"Diff · {word}", "streaming", diff=diff, grows=True, empty="…")
    if update.live.left_running is not None:
        return _left_running(update.live.left_running)
    return _past(update.state)


def _running(update: SessionUpdate) -> DiffView:
    running = update.live.running
    if running is None:
        return _past(update.state)
    notes = _output(running.line, running.tail)
    return DiffView(f"Output · {running.seconds:.0f} s", f"running:{running.line}", notes, grows=True)


def _left_running(left: LeftRunning) -> DiffView:
    title = f"Left running · ended: {sanitize_line(left.ended, 80)}" if left.ended else "Left running"
    return DiffView(title, f"left running:{left.line}", _output(left.line, left.tail), grows=True)


def _output(line: str, tail: str) -> tuple[Block, ...]:
    last = "\n".join(tail.rstrip("\n").split("\n")[-OUTPUT_LINES:])
    said = Block(sanitize(without_colours(last), limit_chars=200_000), space_before=True)
    return (Block(f"$ {sanitize_line(line, 2000)}", Tone.STRONG), said)


def _past(state: SessionState) -> DiffView:
    for run in reversed(state.runs):
        proposal = _last_diff(run)
        if proposal is not None:
            word = "being applied" if run is state.run and run.gate.proposal is proposal else "applied last"
            return DiffView(f"Diff · {word}", f"past:{proposal_key(proposal)}", diff=proposal.diff)
    return DiffView("Diff", "nothing", empty="a diff appears here while the model writes it and while it waits for you")


def _last_diff(run: TaskRun) -> Proposal | None:
    """Return the newest approved diff."""
    begun = run.gate.begun
    if begun is not None and begun.kind is Permission.DIFF:
        return begun
    last = next(applied_diffs(run.history), None)
    return last.proposal if last is not None else None


def streamed_diff(pieces: OfferedPieces, body: str) -> str:
    """Return the unified diff of an unfinished answer. Old lines below what is written so far are not in it."""
    known = {piece.number: piece for piece in pieces.pieces}
    hunks: list[str] = []
    for written in read_unfinished(body):
        piece = meant_piece(pieces, written) if written.path else known.get(written.number)
        path = sanitize_line(piece.path if piece is not None else written.path, 200)
        if piece is not None:
            hunks += [f"--- a/{path}", f"+++ b/{path}", *_hunk(piece.first_line, piece.lines, written.lines)]
        elif path:
            hunks += ["--- /dev/null", f"+++ b/{path}", *_hunk(0, (), written.lines)]
    return "".join(f"{line}\n" for line in hunks)


def _hunk(first_line: int, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    blocks = shared_blocks([(line, True) for line in old[: len(new) + MOST_SKIPPED]], [(line, True) for line in new])
    end = blocks[-1].old + blocks[-1].size if blocks else 0
    yield f"@@ -{first_line},{end} +{max(1, first_line)},{len(new)} @@"
    at_old = at_new = 0
    for block in blocks:
        yield from (f"-{line}" for line in old[at_old : block.old])
        yield from (f"+{line}" for line in new[at_new : block.new])
        yield from (f" {line}" for line in new[block.new : block.new + block.size])
        at_old, at_new = block.old + block.size, block.new + block.size
    yield from (f"+{line}" for line in new[at_new:])
