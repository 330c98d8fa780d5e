"""Extent of a hunk: the number of lines of its body, by the counts in its header or by the lines themselves."""

import re
from collections.abc import Sequence

from agent_workbench.core.patch.hunk_bodies import HeaderNumbers

HUNK = re.compile(r"@@(?=$|[ \t\r])")
"""The beginning of a hunk header."""
BULLET = re.compile(r"- [\w`*\"'(\[]|-+[ \t\r]*$")
"""A list item or a rule in prose, which begins like a removed line."""
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*", re.ASCII)
_SIGNATURE = re.compile(r"\d+\.\d+[\w.-]*\r?")
_BLANK = frozenset({"", "\r"})


def has_both_names(lines: Sequence[str], at: int) -> bool:
    """Return True if the lines `---` and `+++` of a file are at this index."""
    return line_at(lines, at).startswith("--- ") and line_at(lines, at + 1).startswith("+++ ")


def renames(lines: Sequence[str], at: int) -> bool:
    """Return True if a rename is at this index; a line `diff --git` before it may be missing."""
    return line_at(lines, at).startswith("rename from ") and line_at(lines, at + 1).startswith("rename to ")


def line_at(lines: Sequence[str], at: int) -> str:
    """Return the line at this index, empty behind the last one."""
    return lines[at] if at < len(lines) else ""


def strict_size(lines: Sequence[str], start: int, numbers: HeaderNumbers | None) -> int | None:
    """Return the size of the body at `start` if its header counts it correctly, else None."""
    size = None if numbers is None else _counted_size(lines, start, len(lines), numbers)
    if size is None:
        return None
    at = start + size
    while at < len(lines) and lines[at] in _BLANK:
        at += 1
    goes_on = line_at(lines, at)[:1] in {" ", "-", "+", "\\"}
    return None if goes_on and not (has_both_names(lines, at) and line_at(lines, at + 2).startswith("@@ ")) else size


def signed_size(lines: Sequence[str], start: int) -> int:
    """Return the size of the body at `start` in a text whose lines all have their signs."""
    end = start
    while end < len(lines) and not (_begins_hunk(lines[end]) or has_both_names(lines, end) or renames(lines, end)):
        end += 1
    return end - start


def _begins_hunk(line: str) -> bool:
    return line == "@@" or line.startswith("@@ -")


def lenient_size(lines: Sequence[str], start: int, numbers: HeaderNumbers | None) -> tuple[int, bool]:
    """Return the likely size of the body at `start`, and True if its header counts it correctly."""
    end = start
    while end < len(lines) and not ends_hunk(lines, end):
        end += 1
    size = None if numbers is None else _counted_size(lines, start, end, numbers)
    if size is not None and _is_prose(lines[start + size : end]):
        return size, True
    while end > start and lines[end - 1] in _BLANK:
        end -= 1
    return end - start, False


def ends_hunk(lines: Sequence[str], at: int) -> bool:
    """Return True if the line at this index looks like the first line after a hunk."""
    line = lines[at]
    if line[:1] in {" ", "+"} and not line.startswith("+++ "):
        return False
    if HUNK.match(line) or line.startswith("diff --git ") or _FENCE.fullmatch(line) or renames(lines, at):
        return True
    following = line_at(lines, at + 1)
    if line in {"-- ", "--", "-- \r"}:
        return _SIGNATURE.fullmatch(following) is not None or at + 1 == len(lines)
    named = line.startswith("--- ") and following.startswith("+++ ")
    return named and bool(HUNK.match(line_at(lines, at + 2)) or line.startswith(("--- a/", "--- /dev/null")))


def _counted_size(lines: Sequence[str], start: int, end: int, numbers: HeaderNumbers) -> int | None:
    """Return the size of the body from `start` to `end` by its header's counts, None if no size satisfies both."""
    old, new = numbers.old_count, numbers.new_count
    at = start
    while (old > 0 or new > 0) and at < end:
        line = lines[at]
        sign = " " if line in {"", "\r"} else line[0]
        if sign not in " -+\\":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    if old or new or at == start:
        return None
    return at - start + (at < end and lines[at].startswith("\\"))


def _is_prose(rest: Sequence[str]) -> bool:
    """Return True if the lines after a hunk of the counted size cannot belong to it."""
    filled = [line for line in rest if line.strip()]
    if not filled:
        return True
    if filled[0].rstrip() == "--" and not rest[0].strip():
        filled = filled[1:]  # the signature of a mail
    elif filled[0][0] in " +-\\":
        return False
    return not any(line[0] == "+" or (line[0] == "-" and not BULLET.match(line)) for line in filled)
