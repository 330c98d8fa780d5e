"""Text of a note: front matter, read leniently, and markdown; excerpts of it for prompts and lists."""

import re
from collections.abc import Iterable

from msgspec import Struct

from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_chat_markers

FENCE = "---"
MAX_HEAD_LINES = 50
TITLE_CHARS = 120
LABEL_CHARS = 60
EXCERPT_LINES = 14
EXCERPT_CHARS = 1_000
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)\s*:\s*(.*)")
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_WORD = re.compile(r"\w{3,}")


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
