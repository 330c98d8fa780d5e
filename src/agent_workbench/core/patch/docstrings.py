"""Docstrings of Python in a piece that a model rewrites: shown by their first line, and kept where it left them out.

A small model copies a long docstring word for word, or changes its examples in place of the code below it.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

LEAST_LINES = 4
"""A shorter docstring is shown whole."""
_MOST_SIGNATURE_LINES = 40
_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_OPENING = re.compile(r"[ \t]+[rR]?(\"\"\"|''')")
_QUOTES = re.compile(r"^[rR]?(?:\"{3}|'{3})|(?:\"{3}|'{3})$")
_COMMENT = re.compile(r"(?:^|\s)#.*")


class _Docstring(Struct, frozen=True):
    """The docstring of a definition: the definition's name and indentation, the lines, and its short form.

    Without a docstring the lines are the empty range at the first one below the signature.
    """

    name: str
    indent: str
    lines: range
    short: str = ""


def with_short_docstrings(lines: Sequence[str]) -> list[str]:
    """Return lines of Python in which each docstring of `LEAST_LINES` or more is its first line and an ellipsis."""
    short = list(lines)
    for each in reversed(list(_docstrings(lines))):
        if len(each.lines) >= LEAST_LINES:
            short[each.lines.start : each.lines.stop] = [each.short]
    return short


def with_kept_docstrings(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return a new text with the docstrings that the old one was shown without, and the names of what left one out.

    A docstring that says anything else than its short form stays as it was written.
    """
    kept, names = list(new), list[str]()
    before = {(each.name, each.indent): each for each in _docstrings(old) if len(each.lines) >= LEAST_LINES}
    for each in reversed(list(_docstrings(new))):
        shown = before.get((each.name, each.indent))
        if shown is None:
            continue
        if not each.lines:
            names.insert(0, each.name)
        elif _said(new[each.lines.start : each.lines.stop]) != _said([shown.short]):
            continue
        kept[each.lines.start : each.lines.stop] = old[shown.lines.start : shown.lines.stop]
    return kept, tuple(names)


def _docstrings(lines: Sequence[str]) -> Iterator[_Docstring]:
    """Yield the docstring of each definition, in order, also an empty one."""
    at = 0
    while at < len(lines):
        found = _DEFINITION.match(lines[at])
        body = _body(lines, at) if found else None
        if found is None or body is None:
            at += 1
            continue
        first = next((number for number in range(body, len(lines)) if lines[number].strip()), body)
        docstring = _docstring(found[2], found[1], lines, first)
        at = docstring.lines.stop if docstring is not None else body
        yield docstring or _Docstring(found[2], found[1], range(body, body))


def _body(lines: Sequence[str], at: int) -> int | None:
    """Return the index of the first line below a signature; None where it does not end, or the body stands in it."""
    depth = 0
    for number in range(at, min(len(lines), at + _MOST_SIGNATURE_LINES)):
        line = _COMMENT.sub("", lines[number]).rstrip()
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth <= 0:
            return number + 1 if line.endswith(":") else None
    return None


def _docstring(name: str, indent: str, lines: Sequence[str], first: int) -> _Docstring | None:
    """Return the docstring that begins at the line `first`, None if none does."""
    opening = _OPENING.match(lines[first]) if first < len(lines) else None
    if opening is None:
        return None
    quotes, rest = opening[1], lines[first][opening.end() :]
    if quotes in rest:
        return _Docstring(name, indent, range(first, first + 1))
    last = next((number for number in range(first + 1, len(lines)) if quotes in lines[number]), None)
    if last is None:
        return None
    said = rest.strip() or lines[first + 1].strip()
    return _Docstring(name, indent, range(first, last + 1), f"{opening[0]}{said} …{quotes}")


def _said(docstring: Sequence[str]) -> str:
    """Return the words of a docstring, without quotes and an ellipsis at its end."""
    text = " ".join(line.strip() for line in docstring)
    return _QUOTES.sub("", text).strip(" .…")
