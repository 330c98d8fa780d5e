"""What judges of a session read and write: the log of its tasks, and notes in answers, as drafts for a person."""

import re
from collections.abc import Iterable, Iterator

from agent_workbench.core.consult_log import MESSAGE_CHARS, LogEntry
from agent_workbench.core.events import OfferedNote, Recorded
from agent_workbench.core.events.log_lines import log_line, phase_and_status
from agent_workbench.core.ids import SessionId
from agent_workbench.core.knowledge import compose_note
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line

MAX_NOTES = 20
MAX_NOTE_CHARS = 8_000
MAX_NAME_CHARS, MAX_TITLE_CHARS = 60, 200
_LEARNING = re.compile(r"^\s*[*_]*learning[*_]*\s*:", re.IGNORECASE | re.MULTILINE)
_LESSON = re.compile(r"^#{1,4}\s+lesson\b", re.IGNORECASE | re.MULTILINE)
_TITLE = re.compile(r"^(#{1,4})\s+(.+?)\s*$")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


def proposed_notes(skill: str, text: str) -> tuple[OfferedNote, ...]:
    """Return the notes in an answer, none for other consultants than those two."""
    wanted = {"retrospective": (3, _LEARNING), "trainer": (1, _LESSON)}.get(skill)
    if wanted is None:
        return ()
    level, needed = wanted
    taken: set[str] = set()
    drafts: list[OfferedNote] = []
    for title, body in _sections(text, level):
        if not needed.search(body) or len(drafts) == MAX_NOTES:
            continue
        name = _name(title, taken)
        taken.add(name)
        drafts.append(OfferedNote(name, compose_note(title, sanitize(f"# {title}\n\n{body}")[:MAX_NOTE_CHARS]), skill))
    return tuple(drafts)


def _sections(text: str, level: int) -> Iterator[tuple[str, str]]:
    """Yield title and body of each section whose heading is of this level, or a higher one."""
    title, body = "", list[str]()
    for line in text.split("\n"):
        heading = _TITLE.match(line)
        if heading is not None and len(heading[1]) <= level:
            if title:
                yield title, _body(body)
            title, body = sanitize_line(heading[2].strip("[]*_ "), MAX_TITLE_CHARS), []
        elif title:
            body.append(line)
    if title:
        yield title, _body(body)


def _body(lines: list[str]) -> str:
    """Return the lines up to a rule, or to the last line that counts the notes."""
    kept: list[str] = []
    for line in lines:
        if _RULE.fullmatch(line) or re.match(r"\s*\d+ (?:learnings? worth|entries ready)", line, re.IGNORECASE):
            break
        kept.append(line)
    return "\n".join(kept).strip("\n")


def _name(title: str, taken: set[str]) -> str:
    plain = _NOT_A_NAME.sub("-", title.lower())[:MAX_NAME_CHARS].strip("-") or "note"
    number = 2
    name = plain
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name


def task_entries(events: Iterable[Recorded], session: SessionId, root: str) -> Iterator[LogEntry]:
    """Yield an entry for each event that a lesson may come from; consultations have entries of their own."""
    for recorded in events:
        told = phase_and_status(recorded.event)
        if told is not None:
            phase, status = told
            message = log_line(recorded.event)[:MESSAGE_CHARS]
            yield LogEntry(session, recorded.time, "task", phase, root, "", status, "", 0, message)
