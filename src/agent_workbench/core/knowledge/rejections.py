"""Notes from verdicts: what the user rejected or left out in a task, and why."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.errors import PatchError, UsageError
from agent_workbench.core.events import ActionDecided, OfferedNote, Recorded
from agent_workbench.core.knowledge.note_text import compose_note
from agent_workbench.core.knowledge.notes import note_name
from agent_workbench.core.patch.values import LineKind
from agent_workbench.core.plan import Task
from agent_workbench.core.proposals import HunkVerdict, Proposal, Verdict, hunk_location, is_person, left_out_hunks
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.core.text.sanitizer import sanitize_line

NO_REASON = "no reason given"
MAX_LINES, MAX_PLACES, MAX_NOTES = 12, 5, 8
TITLE_CHARS, NAME_WORDS, LINE_CHARS = 100, 8, 160


class Rejection(Struct, frozen=True):
    """Something that the user did not want: the reason, its location in words, and the lines."""

    reason: str
    where: str
    lines: tuple[str, ...] = ()


def notes_of_rejections(history: Sequence[Recorded], task: Task) -> tuple[OfferedNote, ...]:
    """Return a note for each reason that the user gave in a task's events, oldest first."""
    by_reason: dict[str, list[Rejection]] = {}
    for rejection in _rejections(history):
        by_reason.setdefault(" ".join(rejection.reason.split()), []).append(rejection)
    notes: dict[str, OfferedNote] = {}
    for reason, found in list(by_reason.items())[:MAX_NOTES]:
        try:
            name = note_name(" ".join(reason.split()[:NAME_WORDS]))
        except UsageError:  # a reason without a letter that a file's name may have
            name = note_name(f"rejected in {task.id}")
        title = sanitize_line(reason, TITLE_CHARS)
        text = compose_note(title, _text(reason, found, task), type="correction")
        notes.setdefault(name, OfferedNote(name, text, f"rejected in {task.id}"))
    return tuple(notes.values())


def _text(reason: str, found: Sequence[Rejection], task: Task) -> str:
    parts = [reason, "", f"The user rejected this in {task.id} ({sanitize_line(task.description, 120)}):"]
    for rejection in found[:MAX_PLACES]:
        parts += ["", f"- {rejection.where}", *(f"      {line[:LINE_CHARS]}" for line in rejection.lines[:MAX_LINES])]
    return "\n".join(parts)


def _rejections(history: Sequence[Recorded]) -> Iterator[Rejection]:
    for each in decisions_of(history):
        if is_person(each.event.by) and each.versions:
            yield from _of_decision(each.event, each.versions[0], each.versions[-1])


def _of_decision(event: ActionDecided, first: Proposal, last: Proposal) -> Iterator[Rejection]:
    if not last.about_work:
        return
    left = [hunk for hunk in left_out_hunks(event.hunks) if is_reason(hunk.reason)]
    if last.kind is Permission.DIFF and left and any(hunk.path for hunk in left):
        for hunk in left:
            yield Rejection(hunk.reason, hunk_location(hunk), hunk.left or _lines_of(first, hunk))
    elif event.verdict is Verdict.REJECT and is_reason(event.reason):
        what = f"the diff of {', '.join(last.paths)}" if last.kind is Permission.DIFF else f"the {last.kind}"
        yield Rejection(event.reason, f"{what}, step {last.step}", _first_lines(last))


def is_reason(reason: str) -> bool:
    """Return True if the user said why; a rejection without words has a text of its own."""
    return reason.strip() not in {"", NO_REASON}


def _lines_of(proposal: Proposal, wanted: HunkVerdict) -> tuple[str, ...]:
    """Return the changed lines of a hunk, with their signs; none if the diff has no such hunk any more."""
    try:
        hunks = [hunk for file in proposal.patch.files for hunk in file.hunks if hunk.id == wanted.id]
    except PatchError:
        return ()
    changed = (line for hunk in hunks[:1] for line in hunk.lines if line.kind is not LineKind.CONTEXT)
    return tuple(f"{line.kind}{line.text}" for line in changed)


def _first_lines(proposal: Proposal) -> tuple[str, ...]:
    if proposal.kind is Permission.DIFF:
        lines = (line for line in proposal.diff.split("\n") if not line.startswith(("+++", "---")))
        return tuple(line for line in lines if line.startswith(("+", "-")))[:MAX_LINES]
    return tuple(proposal.text.strip().split("\n")[:MAX_LINES])
