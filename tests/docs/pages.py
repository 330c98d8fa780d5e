"""Parser of the pages whose commands and keys a test types: blocks below `<!-- tested: shell|shows|keys -->`."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_BLOCK = re.compile(
    r"^<!-- tested: (?P<kind>shell|shows|keys)(?: (?P<film>[\w-]+))? -->\n"
    r"(?:```\w*\n(?P<body>.*?)^```$|(?P<table>(?:^\|[^\n]*\n)+))",
    re.DOTALL | re.MULTILINE,
)
_CELLS = re.compile(r"(?<!\\)\|")
_SPANS = re.compile(r"`([^`]+)`")
# What differs from run to run: sessions, hashes, times, counts.
_VARYING = (
    (re.compile(r"\d{8}T\d{6}-\w{6}"), "SESSION"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"), "HASH"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"\s+"), " "),
)


class Shell(Struct, frozen=True):
    """Lines for a shell."""

    body: str


class Shows(Struct, frozen=True):
    """Lines that the commands before print, or that are on the screen after the keys before; `…` is a cut."""

    lines: tuple[str, ...]


class Press(Struct, frozen=True):
    """Keys of one row of a table, and the words that the screen shows then."""

    keys: tuple[str, ...]
    words: tuple[str, ...]


class Keys(Struct, frozen=True):
    """Rows of a table: the keys first, the words on the screen last. The first row is the screen at the start."""

    rows: tuple[Press, ...]


Part = Shell | Shows | Keys


class Scene(Struct, frozen=True):
    """A part of a page, and the film that it begins, if any."""

    part: Part
    film: str = ""


def scenes(page: Path) -> Iterator[Scene]:
    """Yield the tested parts of a page in their order."""
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        film = match["film"] or ""
        match match["kind"]:
            case "shell":
                yield Scene(Shell(match["body"]), film)
            case "shows":
                yield Scene(Shows(tuple(match["body"].splitlines())), film)
            case _:
                rows = [_CELLS.split(line)[1:-1] for line in match["table"].splitlines()[2:]]
                pressed = (Press(*(tuple(_SPANS.findall(cell)) for cell in (row[0], row[-1]))) for row in rows)
                yield Scene(Keys(tuple(pressed)), film)


def missing(shown: Shows, printed: str) -> list[str]:
    """Return the lines of `shown` that are not in `printed`, in whatever session, hash, time or count they differ."""
    there = {_plain(line) for line in printed.splitlines()}
    return [line for line in shown.lines if line.strip() not in ("", "…") and _plain(line) not in there]


def _plain(line: str) -> str:
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.strip()
