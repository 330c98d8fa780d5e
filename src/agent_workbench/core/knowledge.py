"""Notes that outlive a task: their values and text, what rejections taught, and which tasks used them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.core.errors import PatchError, UsageError
from agent_workbench.core.events import (
    ActionDecided,
    ChunkDropped,
    KnowledgeFound,
    OfferedNote,
    Recorded,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.patch.values import LineKind
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.proposals import HunkVerdict, Proposal, Verdict, hunk_location, is_person, left_out_hunks
from agent_workbench.core.repo.retrieval import Signal
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.steps import decisions_of
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_chat_markers

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
PUT_ASIDE = "it is put aside for a person, who decides about it after the task; go on without it"
"""Reason of the decision about a note of an unattended task, which is offered when the task is over."""
MAX_NAME_CHARS = 80

FOLDER = "knowledge"
SUFFIX = ".md"
_SEPARATORS = re.compile(r"[^a-z0-9._]+")
_RUNS = re.compile(r"([._-])[._-]+")

FENCE = "---"
MAX_HEAD_LINES = 50
TITLE_CHARS = 120
LABEL_CHARS = 60
EXCERPT_LINES = 14
EXCERPT_CHARS = 1_000
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)\s*:\s*(.*)")
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_WORD = re.compile(r"\w{3,}")

NO_REASON = "no reason given"
MAX_LINES, MAX_PLACES, MAX_NOTES = 12, 5, 8
REASON_TITLE_CHARS, NAME_WORDS, LINE_CHARS = 100, 8, 160

USED, DROPPED = "used", "dropped"


class KnowledgeNote(Struct, frozen=True):
    """A markdown note: `name` has no folder and no suffix; `problem` says why its text could not be read."""

    name: str
    text: str = ""
    problem: str = ""


class KnowledgeHit(Struct, frozen=True):
    """A note that fits a search. Scores compare within one search only; `signals` are their parts, largest first."""

    note: KnowledgeNote
    score: float
    signals: tuple[Signal, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the search that the note contains, best first."""
        return tuple(dict.fromkeys(word for signal in self.signals for word in signal.words))


def check_note_name(name: str) -> None:
    """Raise `UsageError` for a name that cannot be a file's name on every disk."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a note",
            advice=f"use at most {MAX_NAME_CHARS} lower-case letters and digits, joined by '.', '_' or '-'",
        )


def knowledge_folder(memory: str) -> str:
    """Return the folder of the notes, relative to the repo, in the folder `memory`."""
    return f"{memory.strip('/')}/{FOLDER}"


def note_path(memory: str, name: str) -> str:
    """Return the path of a note's file, relative to the repo."""
    return f"{knowledge_folder(memory)}/{name}{SUFFIX}"


def name_in_path(path: str) -> str:
    """Return the name of the note whose file has this path."""
    return path.rpartition("/")[2].removesuffix(SUFFIX)


def note_name(said: str) -> str:
    """Return the name of a note for a title or a file name: its base name, in lower case, joined by `-`.

    Raises `UsageError` if no name is left.
    """
    base = said.strip().replace("\\", "/").rpartition("/")[2].removesuffix(SUFFIX)
    plain = _RUNS.sub(r"\1", _SEPARATORS.sub("-", base.lower())).strip("._-")
    name = plain[:MAX_NAME_CHARS].strip("._-")
    check_note_name(name)
    return name


def auto_name(time: str) -> str:
    """Return the name of a note that nobody named: `YYYY-MM-DD-HHMMSS-auto` of a time in ISO 8601, UTC."""
    return f"{time[:10]}-{''.join(letter for letter in time[11:19] if letter.isdigit())}-auto"


class NoteHead(Struct, frozen=True):
    """Front matter of a note; `body_line` is the number of the body's first line, from 1."""

    title: str = ""
    type: str = ""
    domain: str = ""
    body_line: int = 1


class NoteExcerpt(Struct, frozen=True):
    """Lines `first_line` to `last_line` (from 1, inclusive) of a note, sanitized."""

    first_line: int
    last_line: int
    text: str


def read_head(text: str) -> NoteHead:
    """Return the front matter of a note; a text without one, or with a broken one, has its first heading as title."""
    lines = text.removeprefix("\ufeff").split("\n")
    entries, body = _entries(lines)
    title = entries.get("title", "") or _heading(lines[body:])
    return NoteHead(
        _label(title, TITLE_CHARS),
        _label(entries.get("type", ""), LABEL_CHARS),
        _label(entries.get("domain", ""), LABEL_CHARS),
        body + 1,
    )


def compose_note(title: str, text: str, *, type: str = "", domain: str = "") -> str:
    """Return the text of a note with its front matter. A text that brings its own front matter stays as it is."""
    body = text.strip("\n")
    if body.split("\n", 1)[0].rstrip() == FENCE:
        return f"{body}\n"
    entries = [("title", title), ("type", type), ("domain", domain)]
    head = [f"{key}: {_value(value)}" for key, value in entries if value.strip()]
    return "\n".join([FENCE, *head, FENCE, "", body, ""]) if head else f"{body}\n"


def excerpt_of(text: str, words: Iterable[str] = (), limit_chars: int = EXCERPT_CHARS) -> NoteExcerpt:
    """Return the lines of a note's body around the first that contains one of `words`; else its first lines.

    It is foreign text: control characters and markers of chat templates are made harmless.
    """
    head = read_head(text)
    lines = text.removeprefix("\ufeff").split("\n")
    body = lines[head.body_line - 1 :]
    while body and not body[-1].strip():
        body.pop()
    skipped = next((number for number, line in enumerate(body) if line.strip()), 0)
    hit = _first_hit(body, words)
    first = skipped if hit < skipped + EXCERPT_LINES else hit - EXCERPT_LINES // 3
    last = min(len(body), first + EXCERPT_LINES)
    kept = without_chat_markers(sanitize("\n".join(body[first:last]), limit_chars=limit_chars, line_chars=limit_chars))
    return NoteExcerpt(head.body_line + first, max(head.body_line + last - 1, head.body_line + first), kept.strip("\n"))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text by which two notes are compared."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _entries(lines: list[str]) -> tuple[dict[str, str], int]:
    """Return the entries of the front matter by key, and the number of lines that it takes."""
    if lines[0].rstrip() != FENCE:
        return {}, 0
    end = next((row for row, line in enumerate(lines[1:MAX_HEAD_LINES], 1) if line.rstrip() == FENCE), 0)
    found = (_ENTRY.fullmatch(line.strip()) for line in lines[1:end])
    return {each[1].lower(): each[2].strip().strip("\"'") for each in found if each}, end + 1 if end else 0


def _heading(lines: Iterable[str]) -> str:
    found = (_HEADING.fullmatch(line.strip()) for line in lines)
    return next((each[1] for each in found if each), "")


def _first_hit(lines: list[str], words: Iterable[str]) -> int:
    """Return the number of the first line with the first of the words that any line contains, 0 without one."""
    plain = [line.casefold() for line in lines]
    for word in words:
        for number, line in enumerate(plain):
            if word.casefold() in line:
                return number
    return 0


def _label(text: str, limit_chars: int) -> str:
    return without_chat_markers(sanitize_line(text, limit_chars))


def _value(text: str) -> str:
    """Return a value as one line; what YAML would read as something else is quoted."""
    line = " ".join(text.split())
    plain = bool(re.fullmatch(r"[A-Za-z][\w .,()/+-]*", line)) and line.lower() not in {"true", "false", "null"}
    return line if plain else '"' + line.replace("\\", "\\\\").replace('"', "'") + '"'


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
        title = sanitize_line(reason, REASON_TITLE_CHARS)
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


class NoteUsage(Struct, frozen=True):
    """Number of tasks that had a note in their prompt, and of those that ended `done`, `failed` or not yet.

    The user dropped it in `dropped` further tasks.
    """

    used: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "NoteUsage":
        """Return the usage with these counts."""
        return cls(counts[USED], counts[TaskStatus.DONE], counts[TaskStatus.FAILED], counts[DROPPED])

    @property
    def helped(self) -> bool:
        """True if a task that had the note in its prompt was done."""
        return self.done > 0


def usage_of(events: Iterable[Recorded]) -> dict[str, Counter[str]]:
    """Return the counts of each note in one session, by the note's path."""
    counts: dict[str, Counter[str]] = {}
    now: dict[str, str] = {}
    dropped: set[str] = set()

    def end(status: str) -> None:
        for place, path in now.items():
            words = (DROPPED,) if place in dropped else (USED, status)
            counts.setdefault(path, Counter()).update(filter(None, words))
        now.clear()
        dropped.clear()

    for event in (each.event for each in events):
        match event:
            case TaskStarted():
                end("")
            case KnowledgeFound(notes=notes):
                now.update((note.place, note.path) for note in notes)
            case ChunkDropped(place=place) if place in now:
                dropped.add(place)
            case TaskFinished(status=status):
                end(str(status))
            case _:
                pass
    end("")
    return counts
