"""Builders of diffs and contents, and hypothesis strategies for both."""

from collections.abc import Collection, Mapping

from hypothesis import strategies as st

from agent_workbench.core.patch.application import apply_patch
from agent_workbench.core.patch.fit import fit_diff
from agent_workbench.core.patch.patch_reader import parse_patch, read_diff
from agent_workbench.core.patch.selection import leave_out
from agent_workbench.core.patch.values import FileChange, FileContent, LeftOut, Patch, PatchBounds, selectable_ids

Contents = Mapping[str, FileContent | None]


def content(text: str | None, *, executable: bool = False) -> FileContent | None:
    return None if text is None else FileContent(text.encode(), executable)


def modify(body: str, path: str = "x.py") -> str:
    """Return a diff of one file; `body` begins with its first @@."""
    return f"--- a/{path}\n+++ b/{path}\n{body}"


def keep_hunks(patch: Patch, taken: Collection[str]) -> Patch:
    """Return the patch with all left out but what these ids name."""
    return leave_out(patch, [LeftOut(each) for each in selectable_ids(patch) if each not in taken])


def small(path: str) -> str:
    """Return a diff that changes one line of `path`, whatever the name."""
    return modify("@@ -1 +1 @@\n-a\n+b\n", path)


def create(path: str) -> str:
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+a\n"


def outcome(patch: Patch, before: Contents) -> dict[str, FileContent | None]:
    """Return every file of `before` as it is after the patch."""
    changes: tuple[FileChange, ...] = apply_patch(patch, {path: before.get(path) for path in patch.paths})
    return {**before, **{change.path: change.after for change in changes}}


def applied(diff: str, text: str | None, path: str = "x.py") -> str | None:
    """Return the text of the only file of a diff after it is applied exactly."""
    after = outcome(parse_patch(diff), {path: content(text)})[path]
    return None if after is None else after.data.decode()


def fitted(diff: str, text: str | None, path: str = "x.py") -> str | None:
    """Return the text of the only file of a diff after it is fitted, as a model's diff is."""
    before: Contents = {} if text is None else {path: content(text)}
    read = read_diff(diff, PatchBounds(), tuple(before))
    fit = fit_diff(read, {each: before.get(each) for each in read.paths}, tuple(before))
    after = {change.path: change.after for change in fit.changes}[path]
    return None if after is None else after.data.decode()


# Few different lines, so that context repeats; and lines that readers of diffs are known to trip over.
_PLAIN_LINES = st.sampled_from(["", "a", "b", "c", "    return x", "}"])
_TRICKY_LINES = st.sampled_from(
    [
        *("--- a/x.py", "+++ b/x.py", "-- x", "++ x", "@@ -1 +1 @@", "@@", "diff --git a/x b/x", " ", "\\ No newline"),
        *("a\u2028b", "a\x0bb", "a\x0cb", "a\x85b", "a\x1cb", "a\rb", "\r", "\t", "é", "e\u0301", "\ufeff", "𝄞", "\\"),
        *("GIT binary patch", "Binary files a/x and b/x differ", "rename from x", "-", "+", "old mode 100644"),
    ]
)
_ANY_LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=6)


@st.composite
def texts(draw: st.DrawFn, max_lines: int = 30) -> str:
    """Draw a file's text: LF, CRLF or mixed line ends, with or without the last one, possibly empty."""
    lines = draw(st.lists(st.one_of(_PLAIN_LINES, _PLAIN_LINES, _TRICKY_LINES, _ANY_LINES), max_size=max_lines))
    ends = draw(st.sampled_from([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"]]))
    text = "".join(line + draw(st.sampled_from(ends)) for line in lines)
    return text.removesuffix("\n") if draw(st.booleans()) else text


@st.composite
def edits(draw: st.DrawFn, max_lines: int = 30) -> tuple[str, str]:
    """Draw a text and what some changes make of it; mostly they are close to each other, and they always differ."""
    before = draw(texts(max_lines))
    if draw(st.integers(0, 4)) == 0:
        after = draw(texts(max_lines))
    else:
        lines = before.splitlines(keepends=True) if "\r" not in before else before.split("\n")
        glue = "" if "\r" not in before else "\n"
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(lines)))
            removed = draw(st.integers(0, 3))
            added = draw(st.lists(st.sampled_from(["a\n", "new\n", "\n", "b\n"]), max_size=3))
            lines[at : at + removed] = [line.removesuffix("\n") for line in added] if glue else added
        after = glue.join(lines)
    return before, after if after != before else before + "a line more\n"
