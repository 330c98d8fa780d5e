"""Source text of a diff as lines, with repairs of what a transport did to all of them."""

import re

from msgspec import Struct

_INDENT = re.compile(r"([ \t]+)(?:diff --git |--- \S)")
_HEADER = re.compile(r"@@(?=$|[ \t\r])|--- |\+\+\+ ")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27);")
_UNESCAPED = re.compile(r"[<>]|&(?!\w+;|#\w+;)")
_CURLY = str.maketrans("“”‘’", "\"\"''")


class SourceLines(Struct, frozen=True):
    """The lines of a diff without line feeds, and one sentence for each repair."""

    lines: list[str]
    repairs: tuple[str, ...] = ()


def strict_lines(text: str) -> list[str]:
    """Return the lines of a text that is a diff and nothing else. Lines end at line feeds only."""
    lines = _split(text)
    # No tool ends its headers with CRLF: the text was converted on the way, content lines included.
    if lines and all(line.endswith("\r") for line in lines):
        return [line[:-1] for line in lines]
    return lines


def lenient_lines(text: str) -> SourceLines:
    """Return the lines of a text that contains a diff, without the indent and the carriage returns of all its lines."""
    lines, repairs = _split(text), list[str]()
    if indent := _common_indent(lines):
        repairs.append("the whole diff was indented")
        lines = [line.removeprefix(indent) for line in lines]
    headers = [line for line in lines if _HEADER.match(line)]
    if headers and all(line.endswith("\r") for line in headers):
        repairs.append("the diff's own lines ended with CRLF")
        lines = [line.removesuffix("\r") for line in lines]
    return SourceLines(lines, tuple(repairs))


def unescaped(text: str) -> str | None:
    """Return the text with HTML entities replaced, None unless all of it is escaped.

    An escaped text contains entities, but no angle bracket and no bare ampersand.
    """
    if not _ENTITY.search(text) or _UNESCAPED.search(text):
        return None
    from html import unescape  # a table of all entities, which few diffs need

    return unescape(text)


def with_straight_quotes(text: str) -> str | None:
    """Return the text with straight quotes, None unless all its quotes are curly."""
    is_curly = re.search("[“”‘’]", text) and '"' not in text and "'" not in text
    return text.translate(_CURLY) if is_curly else None


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _common_indent(lines: list[str]) -> str:
    """Return the indent of a diff in a list or a quotation; empty if its headers are not indented."""
    if any(line.startswith(("diff --git ", "--- ")) for line in lines):
        return ""
    return next((match[1] for match in map(_INDENT.match, lines) if match), "")
