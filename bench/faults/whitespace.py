"""Damage to white space: at the ends of lines, at their beginnings, and of the diff itself."""

import re
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from bench.faults.change import Change, FilePair, diff_of
from bench.faults.draft import MARKER, Draft, Hunk, read_draft

_LEADING = re.compile(r"[ \t]*")


def trimmed(draft: Draft, random: Random) -> Draft | None:
    """No line has white space at its end; not for diffs that add such lines, whose white space would be lost."""
    if any(line.startswith("+") and line[1:] != line[1:].rstrip() for hunk in draft.hunks() for line in hunk.body):
        return None
    cut = draft.each_hunk(lambda hunk: replace(hunk, body=tuple(line.rstrip() for line in hunk.body)))
    return cut if cut != draft else None


def unmarked_context(draft: Draft, random: Random) -> Draft | None:
    """Context lines lack the space before them; not where one would then look like something else."""
    context = [line[1:] for hunk in draft.hunks() for line in hunk.body if line.startswith(" ")]
    if not context or any(line[:1] in {"+", "-", "\\", "@"} or line.startswith("diff --git") for line in context):
        return None

    def alter(hunk: Hunk) -> Hunk:
        return replace(hunk, body=tuple(line.removeprefix(" ") for line in hunk.body))

    return draft.each_hunk(alter) if draft.modified() else None


def dedented(draft: Draft, random: Random) -> Draft | None:
    """The lines of a hunk lack the indent that they all share; not where an added line is indent alone."""
    if any(line[:1] == "+" and line != "+" and not line[1:].strip() for hunk in draft.hunks() for line in hunk.body):
        return None

    def alter(hunk: Hunk) -> Hunk:
        filled = [line[1:] for line in hunk.body if line[1:].strip() and line[:1] != "\\"]
        size = len(_shared_indent(filled))
        return replace(
            hunk, body=tuple(line if line[:1] == "\\" else line[:1] + line[1 + size :] for line in hunk.body)
        )

    altered = draft.each_hunk(alter)
    return altered if altered != draft and draft.modified() else None


def indented(draft: Draft, random: Random) -> Draft | None:
    """Every line of every hunk is indented by four more spaces; not in files that indent with tabs."""
    if any("\t" in _indent(line[1:]) for hunk in draft.hunks() for line in hunk.body) or not draft.modified():
        return None

    def alter(line: str) -> str:
        return f"{line[:1]}    {line[1:]}" if line[1:].strip() and line[:1] != "\\" else line

    return draft.each_hunk(lambda hunk: replace(hunk, body=tuple(alter(line) for line in hunk.body)))


def tabs_to_spaces(draft: Draft, random: Random) -> Draft | None:
    """Every tab that indents stands as 4 or 8 spaces; only in files that indent with tabs alone."""
    width = random.choice([4, 8])
    return _reindented(draft, re.compile(r"\t* ?(?![ \t])"), lambda indent: indent.replace("\t", " " * width))


def spaces_to_tabs(draft: Draft, random: Random) -> Draft | None:
    """Every four spaces that indent stand as a tab; only in files that indent with spaces alone."""
    return _reindented(draft, re.compile(r" *(?!\t)"), lambda indent: indent.replace("    ", "\t"))


def ended_by_context(change: Change, random: Random) -> Change | None:
    """Return the change in files that end with the context behind it, without a final newline on either side."""
    return _ended(change, lambda hunk: hunk.body[-1].startswith(" "))


def ended_by_change(change: Change, random: Random) -> Change | None:
    """Return the change in files whose last line it replaces; before and after, or before alone, none ends it."""
    ended = _ended(change, lambda hunk: hunk.body[-1].startswith("+"), context=0)
    if ended is None or random.random() < 0.5:
        return ended
    return Change(ended.id, tuple(FilePair(file.path, file.pre, f"{file.post}\n") for file in ended.files))


def _ended(change: Change, fits: Callable[[Hunk], bool], context: int = 3) -> Change | None:
    if not all(file.pre and file.post and "\r" not in file.pre + file.post for file in change.files):
        return None
    files = []
    for file, drafted in zip(change.files, read_draft(diff_of(change, context)).files, strict=True):
        last = drafted.hunks[-1]
        if not fits(last) or not last.old_count:
            return None
        ends = (last.old_start + last.old_count - 1, last.new_start + last.new_count - 1)
        pre, post = (_cut(text or "", end) for text, end in zip((file.pre, file.post), ends, strict=True))
        files.append(FilePair(file.path, pre, post))
    # Where one side ends with an empty line it has a final newline still, and the marker says something.
    if any(not text or text.endswith("\n") for file in files for text in (file.pre, file.post)):
        return None
    return Change(change.id, tuple(files))


def no_markers(draft: Draft, random: Random) -> Draft | None:
    """No line says that there is no newline at the end of the file."""
    if not any(MARKER in hunk.body for hunk in draft.hunks()) or not draft.modified():
        return None
    return draft.each_hunk(lambda hunk: replace(hunk, body=tuple(line for line in hunk.body if line != MARKER)))


def with_crlf(change: Change, random: Random) -> Change | None:
    """Return the change in files whose lines end with CRLF; not of one that has no line end to tell."""
    texts = [text for file in change.files for text in (file.pre, file.post) if text is not None]
    if any("\r" in text or "\n" not in text for text in texts):
        return None
    return change.mapped(lambda text: text.replace("\n", "\r\n"))


def without_cr(draft: Draft, random: Random) -> Draft | None:
    """The lines of hunks have no carriage return."""
    cut = draft.each_hunk(lambda hunk: replace(hunk, body=tuple(line.removesuffix("\r") for line in hunk.body)))
    return cut if draft.modified() else None


def crlf_diff(text: str, random: Random) -> str | None:
    """Every line of the diff ends with CRLF; not where it makes a file, which might be meant to end its lines so."""
    return None if "\r" in text or "\n--- /dev/null\n" in text else text.replace("\n", "\r\n")


def no_final_newline(text: str, random: Random) -> str | None:
    """The diff's last line does not end."""
    return text.removesuffix("\n") if text.endswith("\n") else None


def _indent(line: str) -> str:
    found = _LEADING.match(line)
    return found[0] if found else ""


def _shared_indent(lines: list[str]) -> str:
    least, most = (end(map(_indent, lines), default="") for end in (min, max))
    return next((least[:at] for at in range(len(least), 0, -1) if most.startswith(least[:at])), "")


def _cut(text: str, lines: int) -> str:
    return "\n".join(text.split("\n")[:lines])


def _reindented(draft: Draft, only: re.Pattern[str], alter: Callable[[str], str]) -> Draft | None:
    lines = [line[1:] for hunk in draft.hunks() for line in hunk.body if line[:1] in {" ", "-", "+"}]
    if not all(only.match(line) for line in lines if line.strip()) or not draft.modified():
        return None

    def alter_line(line: str) -> str:
        if line[:1] not in {" ", "-", "+"}:
            return line
        indent = _indent(line[1:])
        return line[:1] + alter(indent) + line[1 + len(indent) :]

    def alter_hunk(hunk: Hunk) -> Hunk:
        altered = replace(hunk, body=tuple(alter_line(line) for line in hunk.body))
        # Where the old lines stay as they are, nothing in the hunk tells that its new lines are meant otherwise.
        return altered if altered.old != hunk.old else hunk

    altered = draft.each_hunk(alter_hunk)
    return altered if altered != draft else None
