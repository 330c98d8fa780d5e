"""Numbers for the hunks of a diff that was held to the grammar: its lines say where they stand, its headers do not.

What a model writes into a header is free, and wrong more often than not. Whoever reads such a diff later takes wrong
numbers, counts or headings for a reason to doubt it, so they are set by what the grammar has made sure of.
"""

from collections.abc import Iterator, Mapping, Sequence

from agent_workbench.core.patch.grammar.editable_file import FileText
from agent_workbench.core.patch.grammar.rule_list import NO_NEWLINE

_MARKER = NO_NEWLINE.rstrip("\n")
_FROM, _TO = "rename from ", "rename to "
_HEADERS = {("--- ", "+++ "), (_FROM, _TO)}


class _Misfit(Exception):
    """The diff is none that the grammar admits."""


def old_paths(diff: str) -> tuple[str, ...]:
    """Return the paths of the files that a diff changes or removes."""
    # No line of a hunk begins with these words, or reads `--- a/` with a header behind it.
    beginnings = ("--- a/", _FROM)
    named = (line.removeprefix(each) for line in diff.split("\n") for each in beginnings if line.startswith(each))
    return tuple(dict.fromkeys(named))


def numbered(diff: str, texts: Mapping[str, FileText]) -> str | None:
    """Return the diff with true line numbers and counts, None for one that no grammar for `texts` admits.

    `texts` holds the files that are changed or removed, by path.
    """
    try:
        return "".join(f"{line}\n" for line in _Numbering(diff.removesuffix("\n").split("\n"), texts).lines())
    except _Misfit:
        return None


class _Numbering:
    """Walks over a diff; `at` is the index of the next line."""

    def __init__(self, lines: Sequence[str], texts: Mapping[str, FileText]) -> None:
        self._lines = lines
        self._texts = texts
        self._at = 0

    def lines(self) -> Iterator[str]:
        while self._at < len(self._lines):
            yield from self._file()

    def _file(self) -> Iterator[str]:
        if not self._starts_file(self._at):
            raise _Misfit
        old, new = self._lines[self._at : self._at + 2]
        self._at += 2
        empty = self._at == len(self._lines) or self._starts_file(self._at)
        yield from _renamed(old, new, empty=empty) if old.startswith(_FROM) else _header(old, new, empty=empty)
        path = old.removeprefix(_FROM) if old.startswith(_FROM) else old.removeprefix("--- a/")
        text = FileText((), True) if old == "--- /dev/null" else self._texts.get(path)
        if text is None:
            raise _Misfit
        done = shift = 0
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@ -"):
            self._at += 1
            body = [line or " " for line in self._body()]
            before = [line[1:] for line in body if line[0] in " -"]
            start = _place(text, before, done)
            after = sum(line[0] in " +" for line in body)
            yield f"@@ -{start + bool(before)},{len(before)} +{start + shift + bool(after)},{after} @@"
            yield from body
            done, shift = start + len(before), shift + after - len(before)

    def _body(self) -> Sequence[str]:
        start = self._at
        while self._at < len(self._lines) and not self._starts_file(self._at):
            line = self._lines[self._at]
            if line.startswith("@@ -"):
                break
            if line[:1] not in " +-" and line != _MARKER:
                raise _Misfit
            self._at += 1
        return self._lines[start : self._at]

    def _starts_file(self, at: int) -> bool:
        # No line that is added reads `+++ `, so this is never the end of a hunk.
        two = self._lines[at : at + 2]
        return len(two) == 2 and any(two[0].startswith(old) and two[1].startswith(new) for old, new in _HEADERS)


def _header(old: str, new: str, *, empty: bool) -> Iterator[str]:
    """Yield git's own header: a new file that is empty has no hunk, and nothing else says where it ends."""
    made, gone = old == "--- /dev/null", new == "+++ /dev/null"
    path = new.removeprefix("+++ b/") if made else old.removeprefix("--- a/")
    if (empty and not made) or not (made or gone or new == f"+++ b/{path}"):
        raise _Misfit
    yield f"diff --git a/{path} b/{path}"
    if made:
        yield "new file mode 100644"
    if not empty:
        yield from (old, new)


def _renamed(old: str, new: str, *, empty: bool) -> Iterator[str]:
    """Yield git's own header of a renamed file."""
    before, after = old.removeprefix(_FROM), new.removeprefix(_TO)
    if before == after:
        raise _Misfit
    yield f"diff --git a/{before} b/{after}"
    yield from (old, new)
    if not empty:
        yield from (f"--- a/{before}", f"+++ b/{after}")


def _place(text: FileText, before: Sequence[str], done: int) -> int:
    """Return where the old lines of a hunk stand, if that is one place only and behind the hunk before."""
    if not before:
        if text.lines:
            raise _Misfit
        return 0
    last = len(text.lines) - len(before)
    found = [at for at in range(last + 1) if text.lines[at] == before[0] and _stand(text, before, at)]
    if len(found) != 1 or found[0] < done:
        raise _Misfit
    return found[0]


def _stand(text: FileText, before: Sequence[str], at: int) -> bool:
    return text.lines[at : at + len(before)] == tuple(before)
