"""Sessions of a repo as a tree, each fork below its parent, and the preview of a fork."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus, WorkState
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone

_DEEPEST = 8
"""Maximum indentation of the tree."""
GLYPHS = {
    WorkState.DAMAGED: ("✗", Tone.BAD),
    WorkState.OPEN: ("●", Tone.ACCENT),
    WorkState.WAITS: ("◆", Tone.WARN),
    WorkState.PARKED: ("◆", Tone.WARN),
    WorkState.STOPPED: ("○", Tone.WARN),
    WorkState.DONE: ("•", Tone.GOOD),
    WorkState.FAILED: ("✗", Tone.BAD),
}

MAX_FILES = 8


class SessionRow(Struct, frozen=True):
    """A session in the tree: `branch` is the tree line before its name, `glyph` and `state` its status.

    `origin` is the event after which it was forked. `note` is its holder, or its problem. `resumable`: it can be
    resumed here and now; else it can be replayed, and followed while somebody has it open.
    """

    summary: SessionSummary
    branch: str
    glyph: str
    state: WorkState
    tone: Tone
    when: str
    task: str
    origin: str
    note: str
    resumable: bool


def view_sessions(summaries: Sequence[SessionSummary]) -> tuple[SessionRow, ...]:
    """Return the rows of the tree, newest first among siblings."""
    return tuple(_row(each, depth) for each, depth in _tree(summaries))


def _tree(summaries: Sequence[SessionSummary]) -> Iterator[tuple[SessionSummary, int]]:
    known = {each.id for each in summaries}
    below: dict[SessionId, list[SessionSummary]] = {}
    roots = []
    for each in summaries:
        if each.parent in known and each.parent is not None:
            below.setdefault(each.parent, []).append(each)
        else:
            roots.append(each)
    seen: set[SessionId] = set()
    # Journals that name each other as parents have no root; they are listed too.
    for root in (*roots, *summaries):
        waiting = [(root, 0)]
        while waiting:
            each, depth = waiting.pop()
            if each.id in seen:
                continue
            seen.add(each.id)
            yield each, depth
            waiting += [(child, depth + 1) for child in reversed(below.get(each.id, []))]


def _row(summary: SessionSummary, depth: int) -> SessionRow:
    glyph, tone = GLYPHS.get(summary.state, ("·", Tone.DIM))
    free = summary.ours and summary.events > 0 and not summary.holder and not summary.problem
    return SessionRow(
        summary=summary,
        branch=f"{'  ' * (min(depth, _DEEPEST) - 1)}└ " if depth else "",
        glyph=glyph,
        state=summary.state,
        tone=tone,
        when=summary.last[:16].replace("T", " "),
        task=sanitize_line(summary.subject, 120),
        origin=_origin(summary, below_parent=depth > 0),
        note=sanitize_line(_about(summary), 300),
        resumable=free and summary.status in {TaskStatus.IN_PROGRESS, None},
    )


def _origin(summary: SessionSummary, *, below_parent: bool) -> str:
    if summary.parent is None:
        return ""
    return f"from event {summary.parent_seq}{'' if below_parent else f' of {sanitize_line(summary.parent, 40)}'}"


def _about(summary: SessionSummary) -> str:
    if summary.problem:
        return summary.problem
    holder = f"open: {summary.holder}" if summary.holder else ""
    brought = "" if summary.ours else "not started here: it can only be replayed"
    return ", ".join(filter(None, (holder, brought)))


def fork_lines(state: SessionState, why: str, files: Sequence[FileStat]) -> tuple[str, ...]:
    """Return a few lines: where a fork begins (`why`: earlier than requested), and with which files."""
    begins = f"It continues after event {state.seq}, {state.time[:16].replace('T', ' ')}."
    said = (begins, f"{why[0].upper()}{why[1:]}.") if why else (begins,)
    run = state.run
    if run is None:
        return (*said, "", "No task was started by then.")
    notes, waits = state.scratchpad(run.task), run.gate.waiting
    waiting = (f"Waiting there: {sanitize_line(waits.described, 200)}",) if waits is not None else ()
    return (
        *said,
        "",
        sanitize_line(f"{run.task}  {run.definition.title}"),
        f"{counted_text(run.step, 'step')}, {counted_text(run.tokens, 'token')}",
        *waiting,
        "",
        *(("Files as they were, changed so far:",) if files else ("Files as they were: none is changed so far.",)),
        *(f"  {file_line(each)}" for each in files[:MAX_FILES]),
        *((f"  and {len(files) - MAX_FILES} more",) if len(files) > MAX_FILES else ()),
        *((f"Notes as they were: {counted_text(len(notes.splitlines()), 'line')}.",) if notes else ()),
        "",
        "It has a branch, a workspace and notes of its own. The session it comes from stays as it is.",
    )


def file_line(stat: FileStat) -> str:
    """Return a file with its added and removed lines."""
    return f"{sanitize_line(stat.path, 200)}  {stat.text}"
