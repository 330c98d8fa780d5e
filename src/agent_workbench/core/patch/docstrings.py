"""Docstrings of Python in a piece that a model rewrites: shown by their first line, and put back into its new text.

A small model copies a long docstring word for word, or changes its examples in place of the code below it.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import accumulate

from msgspec import Struct

from agent_workbench.core.errors import PartialRewrite
from agent_workbench.core.patch.left_out_text import is_unwritten

LEAST_LINES = 4
"""A shorter docstring is shown whole."""
_MOST_SIGNATURE_LINES = 40
_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
# A comment or a string, each as far as it ends; a long one that does not end is the last group.
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)"""
    r"""|(?P<string>[a-zA-Z]{0,2}(?:\"{3}(?:[^\\"]|\\.|\"{1,2}(?!\"))*\"{3}|'{3}(?:[^\\']|\\.|'{1,2}(?!'))*'{3}"""
    r"""|\"(?!\"\")(?:[^\\"\n]|\\.)*\"|'(?!'')(?:[^\\'\n]|\\.)*'))"""
    r"""|(?P<open>\"{3}|'{3})"""
    # A quote that nothing closes, as far as a string would go: read from each of its quotes, it would take for ever.
    r"""|\"(?:[^\\"\n]|\\.)*|'(?:[^\\'\n]|\\.)*""",
    re.DOTALL,
)
_PARTS = re.compile(r"([uUrR]?)(\"{3}|'{3}|\"|')(.*)\2", re.DOTALL)
_ELLIPSES = ("…", "...")


class _Docstring(Struct, frozen=True):
    """The docstring of a definition: the name and indentation of this, the lines, what it says, and its short form.

    Without a docstring the lines are the empty range at the first one below the signature. Only a long one has a short
    form.
    """

    name: str
    indent: str
    lines: range
    said: str = ""
    short: str = ""


def with_short_docstrings(lines: Sequence[str]) -> list[str]:
    """Return lines of Python in which each docstring of `LEAST_LINES` or more is its first line and an ellipsis."""
    short = list(lines)
    for each in reversed(_docstrings(lines)):
        if each.short:
            short[each.lines.start : each.lines.stop] = [each.short]
    return short


def short_functions(lines: Sequence[str], most_chars: int) -> tuple[range, ...]:
    """Return the lines of the Python functions that are short without their long docstrings, outer ones first.

    Lines are counted from 0, and begin with the decorators and comments above a function. Left out are functions whose
    body is not written yet: their docstrings say what it shall do.
    """
    read = _read(lines)
    sizes = [0, *accumulate(len(line) for line in lines)]
    saved = [0] * len(lines)
    for each in _docstrings(lines, read):
        if each.short:
            saved[each.lines.start] = sizes[each.lines.stop] - sizes[each.lines.start] - len(each.short)
    saved = [0, *accumulate(saved)]
    found: list[range] = []
    for row, line in enumerate(read.rows):
        definition = _DEFINITION.match(line)
        if definition is not None and "def" in definition[0].split():
            whole = range(_start(read, lines, row, definition[1]), _end(read, row))
            size, short = (sums[whole.stop] - sums[whole.start] for sums in (sizes, saved))
            if size - short <= most_chars and not is_unwritten(lines[row : whole.stop]):
                found.append(whole)
    return tuple(found)


def with_kept_docstrings(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return a new text with the docstrings that the old one was shown without, and the names of what had none.

    A docstring that says anything else than its short form stays as it was written. Raises `PartialRewrite` for a short
    form whose docstring cannot be told.
    """
    kept, names = list(new), list[str]()
    before, after = _docstrings(old), _docstrings(new)
    places, by_words = _places(before, after), _by_words(before)
    for now in reversed(after):
        was = _original(now, places.get(now.lines.start), by_words)
        if was is not None:
            kept[now.lines.start : now.lines.stop] = old[was.lines.start : was.lines.stop]
            names[:0] = [] if now.said.endswith(_ELLIPSES) else [now.name]
    return kept, tuple(names)


def _original(
    now: _Docstring, same: _Docstring | None, by_words: Mapping[str, Sequence[_Docstring]]
) -> _Docstring | None:
    """Return the old docstring in place of a new one, or of none, if it stays; `same` is that of the definition."""
    words, own = _words(now.said), same if same is not None and same.short else None
    if own is not None and (not now.lines or words == _first_words(own) or now.said.endswith(_ELLIPSES)):
        return own
    if not now.said.endswith(_ELLIPSES) or words not in by_words:
        return None
    moved = [each for each in by_words[words] if each.indent == now.indent]
    if len(moved) == 1:
        return moved[0]
    raise PartialRewrite(
        f"the docstring of {now.name} is left out: {now.said[:80]!r}", advice="write it whole, or none where it stays"
    )


def _places(before: Sequence[_Docstring], after: Sequence[_Docstring]) -> Mapping[int, _Docstring]:
    """Return, for the line of each docstring in the new text, the one of the same definition in the old text.

    A property and its setter have one name: of several definitions of a name each has its place, if none came or went.
    """
    old, new = _by_name(before), _by_name(after)
    places: dict[int, _Docstring] = {}
    for name, found in new.items():
        if len(found) == len(old.get(name, ())):
            places |= {now.lines.start: was for was, now in zip(old[name], found, strict=True)}
    return places


def _by_name(docstrings: Sequence[_Docstring]) -> Mapping[tuple[str, str], list[_Docstring]]:
    found: dict[tuple[str, str], list[_Docstring]] = {}
    for each in docstrings:
        found.setdefault((each.name, each.indent), []).append(each)
    return found


def _by_words(docstrings: Sequence[_Docstring]) -> Mapping[str, list[_Docstring]]:
    """Return the long docstrings by the words of their first lines."""
    found: dict[str, list[_Docstring]] = {}
    for each in docstrings:
        if each.short:
            found.setdefault(_first_words(each), []).append(each)
    return found


def _first_words(docstring: _Docstring) -> str:
    return _words(docstring.said.partition("\n")[0])


def _words(said: str) -> str:
    return said.strip(" .…\n")


class _Code(Struct, frozen=True):
    """Lines of Python without comments, their strings as quotes; no lines if a string is left open.

    `strings` are by the index of their first character; `inside` are the rows that begin in a string.
    """

    rows: list[str]
    strings: Mapping[int, str]
    inside: Set[int]


def _read(lines: Sequence[str]) -> _Code:
    text = "\n".join(lines)
    code, strings, inside, at, row = list[str](), dict[int, str](), set[int](), 0, 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            return _Code([], {}, inside)
        code += [text[at : token.start()], re.sub(r"[^\n]", '"' if token["string"] else " ", token[0])]
        row += code[-2].count("\n")
        at = token.end()
        if token["string"]:
            strings[token.start()] = token[0]
            inside.update(range(row + 1, row + 1 + token[0].count("\n")))
        row += token[0].count("\n")
    return _Code("".join([*code, text[at:]]).split("\n"), strings, inside)


def _docstrings(lines: Sequence[str], read: _Code | None = None) -> list[_Docstring]:
    """Return the docstring of each definition, in order, also an empty one; none of a text with a string left open."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    read = read or _read(lines)
    rows, strings = read.rows, read.strings
    found: list[_Docstring] = []
    for row, line in enumerate(rows):
        definition = _DEFINITION.match(line)
        body = _body(rows, row) if definition else None
        if definition and body is not None:
            first = next((each for each in range(body, len(rows)) if rows[each].strip()), body)
            margin = lines[first][: len(rows[first]) - len(rows[first].lstrip())] if first < len(rows) else ""
            string = strings.get(starts[first] + len(margin), "")
            last = first + string.count("\n")
            alone = string and not rows[last][starts[first] + len(margin) + len(string) - starts[last] :].strip()
            parts = _PARTS.fullmatch(string) if alone and len(margin) > len(definition[1]) else None
            if parts is None:
                found.append(_Docstring(definition[2], definition[1], range(body, body)))
                continue
            said = parts[3].strip("\\\n \t")
            is_long = len(parts[2]) == 3 and last - first >= LEAST_LINES - 1
            first_line = said.partition("\n")[0].rstrip()
            short = f"{margin}{parts[1]}{parts[2]}{first_line} …{parts[2]}" if is_long else ""
            found.append(_Docstring(definition[2], definition[1], range(first, last + 1), said, short))
    return found


def _start(read: _Code, lines: Sequence[str], at: int, indent: str) -> int:
    """Return the index of the first of the decorators and comments above the definition at this row."""
    first, depth = at, 0
    for row in range(at - 1, max(-1, at - _MOST_SIGNATURE_LINES), -1):
        depth -= _opened(read.rows[row])
        if depth > 0:
            continue
        is_comment = not read.rows[row].strip() and lines[row].startswith(f"{indent}#")
        if not (is_comment or read.rows[row].startswith(f"{indent}@")):
            break
        first = row
    return first


def _end(read: _Code, at: int) -> int:
    """Return the index below the last row of the definition at this one."""
    rows, indent = read.rows, _indent(read.rows[at])
    end, depth = _body(rows, at) or at + 1, 0
    for row in range(end, len(rows)):
        goes_on = depth > 0 or row in read.inside or rows[row - 1].endswith("\\")
        is_outside = rows[row].strip() and _indent(rows[row]) <= indent
        # No definition stands in brackets: those that nothing closes would be read to the end from each definition.
        if is_outside and (not goes_on or _DEFINITION.match(rows[row])):
            break
        depth += _opened(rows[row])
        end = row + 1 if goes_on or rows[row].strip() else end
    return end


def _opened(row: str) -> int:
    return sum(map(row.count, "([{")) - sum(map(row.count, ")]}"))


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _body(rows: Sequence[str], at: int) -> int | None:
    """Return the index of the first row below a signature; None where it does not end, or the body stands in it."""
    depth = 0
    for row in range(at, min(len(rows), at + _MOST_SIGNATURE_LINES)):
        line = rows[row].rstrip()
        depth += _opened(line)
        if depth <= 0 and not line.endswith("\\"):
            return row + 1 if line.endswith(":") else None
    return None
