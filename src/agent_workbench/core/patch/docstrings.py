"""Docstrings of Python in a piece that a model rewrites: shown by their first line, and kept where it left them out.

A small model copies a long docstring word for word, or changes its examples in place of the code below it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

LEAST_LINES = 4
"""A shorter docstring is shown whole."""
_MOST_SIGNATURE_LINES = 40
_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_OPENING = re.compile(r"[ \t]+[rR]?(\"\"\"|''')")
_QUOTES = re.compile(r"^[rR]?(?:\"{3}|'{3})|(?:\"{3}|'{3})$")
_DOTS = " .…"
_COMMENT = re.compile(r"(?:^|\s)#.*")


class _Docstring(Struct, frozen=True):
    """The docstring of a definition: the name and indentation of this, the lines, and its short form if it is long.

    Without a docstring the lines are the empty range at the first one below the signature.
    """

    name: str
    indent: str
    lines: range
    short: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Name and indentation."""
        return self.name, self.indent


def with_short_docstrings(lines: Sequence[str]) -> list[str]:
    """Return lines of Python in which each docstring of `LEAST_LINES` or more is its first line and an ellipsis."""
    short = list(lines)
    for each in reversed(list(_docstrings(lines))):
        if each.short:
            short[each.lines.start : each.lines.stop] = [each.short]
    return short


def with_kept_docstrings(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return a new text with the docstrings that the old one was shown without, and the names of what left one out.

    A docstring that says anything else than its short form stays as it was written.
    """
    kept, names = list(new), list[str]()
    before, after = _by_name(old), _by_name(new)
    for now in reversed(list(_docstrings(new))):
        own, others = before.get(now.key, ()), after[now.key]
        same = own[others.index(now)] if len(own) == len(others) else None
        said = _said(new[now.lines.start : now.lines.stop])
        was = next((each for each in own if each.short and _said([each.short]).strip(_DOTS) == said.strip(_DOTS)), None)
        if was is None and (not now.lines or said.endswith(("…", "..."))):
            was = same if same is not None and same.short else None
            names[:0] = [now.name] if was is not None and not now.lines else []
        if was is not None:
            kept[now.lines.start : now.lines.stop] = old[was.lines.start : was.lines.stop]
    return kept, tuple(names)


def _by_name(lines: Sequence[str]) -> Mapping[tuple[str, str], list[_Docstring]]:
    """Return the docstrings by name and indentation: a property and its setter have one name."""
    found: defaultdict[tuple[str, str], list[_Docstring]] = defaultdict(list)
    for each in _docstrings(lines):
        found[each.key].append(each)
    return found


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
    short = f"{opening[0]}{rest.strip() or lines[first + 1].strip()} …{quotes}"
    return _Docstring(name, indent, range(first, last + 1), short if last - first + 1 >= LEAST_LINES else "")


def _said(docstring: Sequence[str]) -> str:
    """Return the words of a docstring, without its quotes."""
    return _QUOTES.sub("", " ".join(line.strip() for line in docstring)).strip()
