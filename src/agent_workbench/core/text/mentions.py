"""Mentions of files in the user's words: `@path`, `@path:line`, `@path:first-last`, with quotes around odd names."""

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

MOST_MENTIONS = 20
MOST_CHARS = 400
MARK = "@"
# An address (`ada@example.org`) is none: the mark begins a word.
_BEGIN, _CHAR = rf"(?<![^\s(\[{{'\"`,;:]){MARK}", "[^\\s\"'`<>]"
_MENTION = re.compile(rf"{_BEGIN}(?:\"([^\"\n]{{1,{MOST_CHARS}}})\"|({_CHAR}{{1,{MOST_CHARS}}}))")
_OPEN = re.compile(rf"{_BEGIN}(\"?)({_CHAR}{{0,{MOST_CHARS}}})\Z")
_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?)?")
_PLAIN = re.compile(r"[\w./+=@~%#-]+")
_ENDS = ".,;:!?)]}"


class FileRange(Struct, frozen=True):
    """Lines of a file: all of them if `first` is 0, those around `first` if `last` is 0."""

    path: str
    first: int = 0
    last: int = 0


def mentions(words: str) -> tuple[str, ...]:
    """Return what the words mention, without the marks and closing punctuation; each once, in order, bounded."""
    found = (quoted or plain.rstrip(_ENDS) for quoted, plain in _MENTION.findall(words))
    return tuple(dict.fromkeys(filter(None, found)))[:MOST_MENTIONS]


def mention_of(place: str) -> str:
    """Return a place as it is mentioned: in quotes if it would end early."""
    return f"{MARK}{place}" if _PLAIN.fullmatch(place.replace(":", "")) else f'{MARK}"{place}"'


def without_mentions(text: str) -> str:
    """Return a text of somebody else that mentions nothing: a blank follows each mark."""
    return _MENTION.sub(lambda found: f"{MARK} {found[0][len(MARK) :]}", text)


def mentioned_range(asked: str, paths: Collection[str]) -> FileRange | None:
    """Return the lines that a mention names, None if its path is none of `paths`, spelled exactly."""
    if asked in paths:
        return FileRange(asked)
    match = _PLACE.fullmatch(asked)
    if match is None or match["path"] not in paths:
        return None
    first, last = int(match["first"] or 0), int(match["last"] or 0)
    return FileRange(match["path"], first, last)


def looks_like_path(asked: str) -> bool:
    """Return True if a mention is meant for a file: `@property` is not."""
    return "/" in asked or "." in asked


class OpenMention(Struct, frozen=True):
    """Mention that is being written: its beginning in the text, and what is written of its place so far."""

    start: int
    prefix: str


def open_mention(before: str) -> OpenMention | None:
    """Return the mention that the text before the cursor ends with, None if it ends with other words."""
    match = _OPEN.search(before)
    return OpenMention(match.start(), match[2]) if match else None


def matching_paths(paths: Sequence[str], prefix: str, limit: int) -> tuple[str, ...]:
    """Return the paths that fit what is written of one: names that begin with it first, then paths, then the rest.

    Case does not matter. Among equals the shorter path comes first.
    """
    wanted = prefix.lower()
    ranked: list[tuple[int, int, str]] = []
    for path in paths:
        low = path.lower()
        if wanted in low:
            name = low.rfind("/") + 1
            rank = 0 if low.startswith(wanted, name) else 1 if low.startswith(wanted) else 2
            ranked.append((rank, len(path), path))
    ranked.sort()
    return tuple(path for _, _, path in ranked[:limit])
