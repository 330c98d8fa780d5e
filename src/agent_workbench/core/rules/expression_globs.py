"""Regular expressions written where globs are expected: detection, and the equivalent globs."""

import itertools
import re

_SIGNS = re.compile(
    r"\.[*+]|\\[sSwWdDbB.*+?()\[\]{}|^$/-]|^\^|\$$|\(\?|\([^()\s]*\|[^()\s]*\)|\)[?*+]|\]\+|\{[0-9]+(?:,[0-9]*)?\}|\[\^"
)
_REPEATED = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_MAX_GLOBS = 8
_BLANK, _ANY = " ", "?"


def looks_like_expression(pattern: str) -> bool:
    """Return True if a pattern was written as a regular expression."""
    return bool(_SIGNS.search(pattern))


def globs_of(expression: str) -> tuple[str, ...]:
    """Return the globs equivalent to a regular expression; none if globs cannot express it."""
    try:
        globs, end = _alternatives(expression, 0)
    except ValueError:
        return ()
    if end != len(expression):
        return ()
    ends = expression.endswith("$") and not expression.endswith("\\$")
    whole = (re.sub(r"\*+", "*", glob if ends else f"{glob}*").strip() for glob in globs)
    return tuple(dict.fromkeys(each for each in whole if each.strip("*? ")))


def _alternatives(text: str, at: int) -> tuple[list[str], int]:
    """Return the globs of `a|b|…` from `at` on, and the index after them: a closing bracket or the end."""
    found: list[str] = []
    ways = [""]
    while at < len(text) and text[at] != ")":
        if text[at] == "|":
            found, ways, at = found + ways, [""], at + 1
            continue
        atoms, at = _atom(text, at)
        repeated = _REPEATED.match(text, at)
        if repeated:
            atoms, at = _repeated(atoms, repeated[0]), repeated.end()
        ways = ["".join(pair) for pair in itertools.product(ways, atoms)]
        if len(found) + len(ways) > _MAX_GLOBS:
            raise ValueError("too many globs")
    return found + ways, at


def _atom(text: str, at: int) -> tuple[list[str], int]:
    match text[at]:
        case "(":
            inner = at + 3 if text.startswith("(?:", at) else at + 1
            ways, end = _alternatives(text, inner)
            if text.startswith("?", inner) or not text.startswith(")", end):
                raise ValueError("no glob says that")
            return ways, end + 1
        case "[":
            end = text.find("]", at + 2)
            if end < 0:
                raise ValueError("a set without its end")
            content = text[at + 1 : end].replace("\\s", _BLANK).replace("\\", "")
            return [f"[{'!' + content[1:] if content.startswith('^') else content}]"], end + 1
        case "\\" if at + 1 < len(text):
            return [_escaped(text[at + 1])], at + 2
        case "^" | "$":
            return [""], at + 1
        case ".":
            return [_ANY], at + 1
    return [text[at]], at + 1


def _escaped(letter: str) -> str:
    if letter in "sS":
        return _BLANK if letter == "s" else _ANY
    if letter in "bB":
        return ""
    if letter in "wWdD":
        return _ANY
    return f"[{letter}]" if letter in "*?[" else letter


def _repeated(atoms: list[str], how: str) -> list[str]:
    if atoms == [_BLANK]:
        return atoms
    if atoms == [_ANY]:
        return ["?*" if how[0] == "+" else "*"]
    if how[0] == "?":
        return [*atoms, ""]
    return [f"{atom}*" for atom in atoms] if how[0] == "+" else ["*"]
