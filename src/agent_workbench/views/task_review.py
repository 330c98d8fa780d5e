"""Review of a whole task: its changes as one diff, with the steps that wrote each hunk and their reasons."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.combination import CombinedFile, combine_patches
from agent_workbench.core.patch.diff_text import render_patch
from agent_workbench.core.patch.values import FileOperation, Patch
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.state.applied_diffs import applied_diffs
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import Step
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone
from agent_workbench.views.diff_document import DiffLine, diff_lines
from agent_workbench.views.transcript_blocks import split_answer

MAX_THOUGHT_CHARS = 300


class ReviewStep(Struct, frozen=True):
    """A step that wrote a hunk: `key` is its transcript entry (empty: none), `text` its reason."""

    key: str
    text: str


class ReviewHunk(Struct, frozen=True):
    """A hunk with the steps that wrote it, oldest first. `head` is the header of a file that begins with it."""

    head: str
    steps: tuple[ReviewStep, ...]
    lines: tuple[DiffLine, ...]


class ReviewView(Struct, frozen=True):
    """The changes of a task; `remark` is the task's outcome, empty while it runs."""

    title: str
    remark: str
    hunks: tuple[ReviewHunk, ...]


def view_review(run: TaskRun) -> ReviewView:
    """Return the review of a run, from its journal alone."""
    applied = tuple(applied_diffs(run.history))[::-1]
    steps = [_review_step(each) for each in applied]
    hunks: list[ReviewHunk] = []
    try:
        files = combine_patches([each.proposal.patch for each in applied])
        for file in files:
            hunks += _file_hunks(file, steps)
    except PatchError as error:
        return ReviewView(f"{run.task}", f"its diffs cannot be combined: {sanitize_line(str(error))}", ())
    lines = [line for hunk in hunks for line in hunk.lines]
    added, removed = (sum(line.tone is tone for line in lines) for tone in (Tone.ADDED, Tone.REMOVED))
    many = counted_text(len(files), "file")
    return ReviewView(f"{run.task} · {many} · +{added} −{removed}", _remark(run), tuple(hunks))


def reviewable(state: SessionState, wanted: str = "") -> TaskRun | None:
    """Return the newest run of task `wanted` with changes; of any task if that has none."""
    runs = [run for run in reversed(state.runs) if _changed(run)]
    return next((run for run in runs if run.task == wanted), runs[0] if runs else None)


def _changed(run: TaskRun) -> bool:
    return next(applied_diffs(run.history), None) is not None


def _remark(run: TaskRun) -> str:
    if run.merged is not None:
        return f"merged into {sanitize_line(run.merged.into, 60)}"
    if run.commit is not None:
        return f"committed as {run.commit[:10]}, not merged"
    return "rolled back; this is what was tried" if run.status is TaskStatus.FAILED else "not committed yet"


def _review_step(step: Step) -> ReviewStep:
    proposal, answer = step.proposal, step.answer
    thought = split_answer(answer.event.text).thought if answer is not None else ""
    how = ", changed by its command" if proposal.tool == KEEP_CHANGES else ", edited by you" if proposal.edited else ""
    why = sanitize_line(thought, MAX_THOUGHT_CHARS) or "no reason given"
    number = answer.event.step if answer is not None else proposal.step
    return ReviewStep(str(answer.seq) if answer is not None else "", f"step {number}{how}: {why}")


def _file_hunks(file: CombinedFile, steps: Sequence[ReviewStep]) -> Iterator[ReviewHunk]:
    groups: list[list[DiffLine]] = []
    for line in diff_lines(render_patch(Patch((file.patch,)))):
        if line.tone is Tone.HUNK:
            groups.append([])
        if groups:
            groups[-1].append(line)
    head = _head(file)
    if not groups:
        yield ReviewHunk(head, (), ())
    for number, (lines, origins) in enumerate(zip(groups, file.origins, strict=True)):
        yield ReviewHunk("" if number else head, tuple(steps[each] for each in origins), tuple(lines))


def _head(file: CombinedFile) -> str:
    patch = file.patch
    renamed = f"{sanitize_line(patch.old_path, 200)} → " if patch.old_path != patch.path else ""
    said = {FileOperation.CREATE: "new", FileOperation.DELETE: "removed"}.get(patch.operation, "")
    mode = f"mode {patch.mode:o}" if patch.mode is not None and not said else ""
    return "  ".join(filter(None, (f"{renamed}{sanitize_line(patch.path, 200)}", said, mode)))
