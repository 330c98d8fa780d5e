"""The diff pane: the waiting proposal in full, a running command, a streamed diff, or the last applied one."""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import ContextFilled, ModelAnswered, PromptBuilt
from agent_workbench.core.knowledge.rejections import is_reason
from agent_workbench.core.live import LeftRunning, SessionUpdate
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.alignment import shared_blocks
from agent_workbench.core.patch.rewrite.answer_body import read_unfinished
from agent_workbench.core.proposals import (
    ANSWER_SERVER,
    KEEP_CHANGES,
    Proposal,
    Verdict,
    is_person,
    shown_sha,
    unreviewed_paths,
)
from agent_workbench.core.rules.command_lines import left_running
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.file_pieces import OfferedPieces, meant_piece, offered_pieces
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.core.text.amounts import counted_text, span_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, sanitize_whole, without_colours
from agent_workbench.core.tools.permissions import RUNS_PROGRAMS
from agent_workbench.core.tools.skill_tools import script_call
from agent_workbench.core.tools.spec import REWRITE
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.consultations import review_notes
from agent_workbench.views.gate.notes import (
    call_notes,
    commit_notes,
    finish_notes,
    folded_files,
    merge_notes,
    note_notes,
    plan_notes,
)
from agent_workbench.views.gate.playbook_proposal import playbook_diff, playbook_notes, script_diff, script_notes
from agent_workbench.views.transcript.answer_parts import EDITS, split_answer

WHY_CHECKED = {
    CheckPurpose.BASELINE: "as the baseline before any change",
    CheckPurpose.AFTER_DIFF: "to check the diff",
    CheckPurpose.ASKED: "because the model asked",
    CheckPurpose.FINAL: "as the last check before the commit",
}
CALLED = RUNS_PROGRAMS | {Permission.READ}
"""Proposals that are shown by themselves, without the run that they belong to."""
LEFT_RUNNING_NOTE = """\
It is left running in the sandbox until the task ends. It sees each change of the workspace and can change nothing \
there."""
OUTPUT_LINES = 120
"""Maximum number of lines of running output, because every update lays out all of them."""

MOST_SKIPPED = 20
"""Old lines that the new text may be ahead of; a bare bracket that matches far below would make all between deleted."""


class DiffView(Struct, frozen=True):
    """Content of the pane: notes above a diff. `key` identifies it; `proposal` is empty if nothing waits.

    `special` are files that need a second look. `by_hunk`: parts of the diff can be left out. `partial`: it is the
    user's selection from another diff. `source` is the proposal with the parsed diff. `grows`: text is appended while
    it is shown. `folded` are the numbers of files, from 0, that are folded first: the user has reviewed them.
    """

    title: str
    key: str
    notes: tuple[Block, ...] = ()
    diff: str = ""
    proposal: str = ""
    by_hunk: bool = False
    partial: bool = False
    special: tuple[str, ...] = ()
    grows: bool = False
    empty: str = ""
    source: Proposal | None = None
    folded: frozenset[int] = frozenset()


def view_diff(update: SessionUpdate, pieces: Callable[[TaskRun], OfferedPieces] = offered_pieces) -> DiffView:
    """Return the content of the diff pane. `pieces` are those that the model of a run may rewrite."""
    run, waiting = update.state.run, update.state.waiting
    if waiting is not None and waiting.kind is Permission.KNOWLEDGE:
        view = _notes_view(waiting)
        return view if update.live.replay is None else replace(view, by_hunk=False)
    if waiting is not None and waiting.plan is not None:
        key = proposal_key(waiting)
        return DiffView("Plan · waits", key, plan_notes(waiting, waiting.plan), "", key, source=waiting)
    if waiting is not None and (run is None or waiting.kind in CALLED):
        return _call_view(update.state, waiting)
    if run is not None and waiting is not None:
        view = _waiting(update.state, run, waiting)
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


def proposal_key(proposal: Proposal) -> str:
    """Return a key that is different for each content of a proposal."""
    return f"{proposal.id}:{shown_sha(proposal)}"


def _can_keep(state: SessionState, run: TaskRun) -> bool:
    """Return True if a person rejected something in the task, and notes of it may be kept."""
    denied = state.config is not None and state.config.approvals.of(Permission.KNOWLEDGE) is Approval.DENY
    decided = (each.event for each in decisions_of(run.history))
    return not denied and any(
        each.verdict is Verdict.REJECT and is_person(each.by) and is_reason(each.reason) for each in decided
    )


def _waiting(state: SessionState, run: TaskRun, proposal: Proposal) -> DiffView:
    key = proposal_key(proposal)
    match proposal.kind:
        case Permission.DIFF:
            about = "Changed by the command" if proposal.tool == KEEP_CHANGES else "Diff"
            edited = " · edited" if proposal.edited else ""
            title = f"{about}{edited} · waits"
            special = tuple(sanitize_whole(path, keep_returns=True) for path in proposal.special)
            by_hunk = proposal.tool != KEEP_CHANGES
            view = DiffView(title, key, _remarks(proposal), proposal.diff, key, by_hunk=by_hunk, special=special)
            return replace(view, partial=bool(proposal.hunks), source=proposal)
        case Permission.COMMIT:
            notes = (*commit_notes(state.session, proposal), *review_notes(state, proposal), *_remarks(proposal))
            return _of_whole_task("Commit · waits", notes, proposal)
        case Permission.MERGE:
            return _of_whole_task("Merge · waits", merge_notes(proposal, rejected=_can_keep(state, run)), proposal)
        case Permission.CHECK:
            return DiffView("Checks · wait", key, _check_notes(proposal), proposal.diff, key)
        case Permission.SUMMARY:
            edited = " · edited" if proposal.edited else ""
            return DiffView(f"Summary{edited} · waits", key, _summary_notes(run, proposal), proposal.diff, key)
        case Permission.FINISH:
            return DiffView("Finish · waits", key, finish_notes(run, proposal), proposal.diff, key)
        case Permission.KNOWLEDGE:
            return _notes_view(proposal)
        case Permission.COMMAND | Permission.READ | Permission.PLAN | Permission.SCRIPT | Permission.EXTERNAL:
            return _call_view(state, proposal)
        case Permission.INFRASTRUCTURE:
            return _call_view(state, proposal)
    assert_never(proposal.kind)


def _call_view(state: SessionState, proposal: Proposal) -> DiffView:
    """Return the view of a command, or of the call of a tool: of a task, or of a chat."""
    key, sandbox = proposal_key(proposal), state.config.sandbox if state.config else None
    if run := proposal.playbook:
        notes = (*playbook_notes(run, sandbox), *_remarks(proposal))
        return DiffView("Playbook · waits", key, notes, playbook_diff(run), key)
    if script := script_call(proposal):
        notes = (*script_notes(script, sandbox), *_remarks(proposal))
        return DiffView("Script · waits", key, notes, script_diff(script), key)
    if proposal.kind in {Permission.COMMAND, Permission.READ}:
        return _asked(proposal, key)
    notes = call_notes(state.specs, proposal)
    title = "Question" if proposal.tool == ANSWER_SERVER else f"{proposal.kind.capitalize()} tool"
    return DiffView(f"{title} · waits", key, notes, "", key)


def _notes_view(proposal: Proposal) -> DiffView:
    """Return the view of proposed notes: a diff of their files, of which each can be left out."""
    key, edited = proposal_key(proposal), " · edited" if proposal.edited else ""
    notes = (*note_notes(proposal), *_remarks(replace(proposal, special=())))
    view = DiffView(f"Knowledge{edited} · waits", key, notes, proposal.diff, key, by_hunk=True)
    return replace(view, partial=bool(proposal.hunks), source=proposal)


def _of_whole_task(title: str, notes: tuple[Block, ...], proposal: Proposal) -> DiffView:
    """Return the view of a commit or merge: reviewed files are folded, and beside these the others are marked."""
    key = proposal_key(proposal)
    special = tuple(sanitize_whole(path, keep_returns=True) for path in unreviewed_paths(proposal))
    return DiffView(title, key, notes, proposal.diff, key, special=special, folded=folded_files(proposal))


def _summary_notes(run: TaskRun, proposal: Proposal) -> tuple[Block, ...]:
    said = Block(sanitize_whole(proposal.text.strip()), space_before=True)
    if proposal.paths:
        about = f"This replaces the scratchpad, {sanitize_line(proposal.paths[0], 200)}."
        stays = "Its current text is archived beside it. If you reject this, the scratchpad stays as it is."
        return (Block(about, Tone.STRONG), Block(stays, Tone.DIM), said, *_remarks(proposal))
    by = " The model could not write it, so the workbench did." if proposal.fallback and not proposal.edited else ""
    about = f"In the prompt this replaces {summarized_steps(run, proposal)}.{by}"
    stays = "Rules, task, notes, your messages, pinned code, the change so far and the failing output stay as they are."
    if kept := steps_kept(run, proposal):
        stays += f" Verbatim: {kept}."
    return (Block(about, Tone.STRONG), Block(stays, Tone.DIM), said, *_remarks(proposal))


def _asked(proposal: Proposal, key: str) -> DiffView:
    what = "Command" if proposal.kind is Permission.COMMAND else proposal.tool.replace("_", " ").capitalize()
    asked = Block(sanitize_whole(proposal.text.strip()), Tone.STRONG)
    left = proposal.kind is Permission.COMMAND and left_running(proposal.text)
    told = (Block(LEFT_RUNNING_NOTE, space_before=True),) if left else ()
    return DiffView(f"{what} · waits", key, (asked, *told, *_remarks(proposal)), proposal.diff, key)


def _remarks(proposal: Proposal) -> tuple[Block, ...]:
    """Return the remarks above a diff: paths that need a second look, and repairs."""
    paths = ", ".join(sanitize_line(path, 200) for path in proposal.special)
    mended = "\n".join(sanitize_line(each, 400) for each in proposal.repaired)
    return (
        *((Block(f"Needs a second look: {paths}", Tone.WARN, "!", Tone.WARN),) if paths else ()),
        *(
            (Block(f"{repairs(proposal)}; exactly what is shown would be applied", Tone.WARN, "~", Tone.WARN),)
            if mended
            else ()
        ),
        *((Block(mended),) if mended else ()),
    )


def repairs(proposal: Proposal) -> str:
    """Return the number of repairs in a diff as text, empty if there is none."""
    many = len(proposal.repaired)
    return counted_text(many, "repair") if many else ""


def _check_notes(proposal: Proposal) -> tuple[Block, ...]:
    why = WHY_CHECKED[proposal.purpose] if proposal.purpose is not None else WHY_CHECKED[CheckPurpose.ASKED]
    commands = "\n".join(f"$ {sanitize_whole(command)}" for command in proposal.commands)
    return (
        Block(f"These run in the workspace, {why}:", Tone.DIM),
        Block(commands or sanitize_whole(proposal.text), Tone.STRONG, space_before=True),
    )


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


def summarized_steps(run: TaskRun, proposal: Proposal) -> str:
    """Return the steps that a summary replaces, in words."""
    steps = [step for seq, step in _steps(run) if not 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps else "what was before"


def steps_kept(run: TaskRun, proposal: Proposal) -> str:
    """Return the steps that stay verbatim beside a summary, in words; empty for none."""
    steps = [step for seq, step in _steps(run) if 0 <= _through(run, proposal) < seq]
    return span_text(min(steps), max(steps)) if steps and proposal.outlook is not None else ""


def frees_text(proposal: Proposal) -> str:
    """Return the number of freed tokens, empty if unknown."""
    outlook = proposal.outlook
    if outlook is None or not outlook.before:
        return ""
    frees = outlook.before - outlook.after
    return f"frees {frees:,} of {outlook.before:,} tokens" if frees > 0 else "frees nothing"


def _through(run: TaskRun, proposal: Proposal) -> int:
    """Return the last event that a summary covers, -1 for all."""
    if proposal.outlook is not None:
        return proposal.outlook.through_seq
    filled = [each.event.through_seq for each in run.history if isinstance(each.event, ContextFilled)]
    return filled[-1] if filled else -1


def _steps(run: TaskRun) -> list[tuple[int, int]]:
    """Return the event and number of each step."""
    purpose, steps = Purpose.EXECUTOR, []
    for recorded in run.history:
        event = recorded.event
        if isinstance(event, PromptBuilt):
            purpose = event.purpose
        elif isinstance(event, ModelAnswered) and purpose is Purpose.EXECUTOR:
            steps.append((recorded.seq, event.step))
    return steps
