"""Proposals as tool calls of the protocol: title, kind, places in the user's checkout, and diffs."""

from collections.abc import Iterator, Sequence

from acp import schema as wire

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.patch.values import FileChange, FileOperation, FilePatch, HunkLine
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.markdown import fenced, fenced_whole
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole
from agent_workbench.core.tools.spec import FINISH, NOTE
from agent_workbench.views.gate.proposal_views import describe

Content = wire.ContentToolCallContent | wire.FileEditToolCallContent | wire.TerminalToolCallContent
MAX_TITLE_CHARS = 200
MAX_OUTPUT_CHARS = 20_000
MAX_LOCATIONS = 50
MAX_SHOWN_CHARS = 1_000_000
"""Characters of diffs and texts in one tool call; what is longer is not sent, and cannot be approved in the editor."""
EXECUTABLE = 0o100755
NOTES = frozenset({FINISH, NOTE})
"""Tools of the model that write something down for the task."""
SEARCHES = frozenset({"search_code", "grep", "list_files", "query_knowledge", "find_playbook"})


def title_of(proposal: Proposal) -> str:
    """Return a proposal as one line of plain text."""
    word, what, more = describe(proposal)
    return sanitize_line(" · ".join(filter(None, (f"{word}: {what}", more))), MAX_TITLE_CHARS)


def kind_of(proposal: Proposal) -> wire.ToolKind:
    """Return the protocol's kind of a proposal."""
    if proposal.tool in SEARCHES:
        return "search"
    return "think" if proposal.tool in NOTES else proposal.tool_kind


def places_of(proposal: Proposal, root: str) -> list[wire.ToolCallLocation]:
    """Return the changed places in the checkout at `root`, the first line of each file."""
    return [
        wire.ToolCallLocation(path=path_in(root, file.path), line=file.hunks[0].new_start if file.hunks else None)
        for file in _files(proposal)[:MAX_LOCATIONS]
    ]


def path_in(root: str, path: str) -> str:
    """Return the absolute path of a file in the checkout."""
    return f"{root}/{path}"


def text_content(text: str) -> wire.ContentToolCallContent:
    """Return Markdown as content."""
    return wire.ContentToolCallContent(type="content", content=wire.TextContentBlock(type="text", text=text))


def output_content(output: str) -> list[Content]:
    """Return the output of an action, cut, as content."""
    return [text_content(fenced(output, limit_chars=MAX_OUTPUT_CHARS))] if output.strip() else []


def change_content(changes: Sequence[FileChange], root: str) -> list[Content] | None:
    """Return whole files before and after as diffs, None if an editor would not show all of it as it is."""
    return _checked([_whole_file(change, root) for change in changes])


def diff_content(proposal: Proposal, root: str) -> list[Content] | None:
    """Return the hunks of a proposal as diffs, None if an editor would not show all of it as it is."""
    return _checked([each for file in _files(proposal) for each in _hunks(file, root)])


def both_forms(diffs: Sequence[Content] | None, diff: str) -> list[Content]:
    """Return a change as the protocol's diffs, if it has any, and as text: some clients show only a count of a diff.

    What is too long in both forms is given as text alone.
    """
    text = patch_content(diff)
    both = [*(diffs or ()), *text]
    return both if size_of(both) <= MAX_SHOWN_CHARS else text


def patch_content(diff: str) -> list[Content]:
    """Return a unified diff as text, in which nothing is invisible."""
    return [text_content(fenced_whole(diff.removesuffix("\n"), "diff"))] if diff else []


def size_of(content: Sequence[Content]) -> int:
    """Return the characters of texts in a tool call."""
    return sum(
        len(each.new_text) + len(each.old_text or "")
        if isinstance(each, wire.FileEditToolCallContent)
        else len(each.content.text)
        if isinstance(each, wire.ContentToolCallContent) and isinstance(each.content, wire.TextContentBlock)
        else 0
        for each in content
    )


def _files(proposal: Proposal) -> tuple[FilePatch, ...]:
    try:
        return proposal.patch.files if proposal.diff else ()
    except PatchError:  # a journal of 0.1 may hold a change that is not text
        return ()


def _checked(diffs: Sequence[wire.FileEditToolCallContent | None]) -> list[Content] | None:
    found = [each for each in diffs if each is not None]
    if not found:
        return None
    whole = len(found) == len(diffs) and all(
        _is_seen(text) for each in found for text in (each.old_text, each.new_text)
    )
    return [*found] if whole else None


def _is_seen(text: str | None) -> bool:
    """Return True if an editor shows all of a text: nothing in it is invisible, nor looks like something else."""
    spaced = (text or "").replace("\t", " ")
    return sanitize_whole(spaced, keep_returns=True) == spaced


def _whole_file(change: FileChange, root: str) -> wire.FileEditToolCallContent | None:
    """Return the change of a file, None if it is no text, or if more than its text changes."""
    before, after = change.before, change.after
    try:
        old = before.data.decode() if before is not None else None
        new = after.data.decode() if after is not None else None
    except UnicodeDecodeError:
        return None
    executable = before is not None and before.executable
    if after is None or new is None or after.executable is not executable or old == new:
        return None
    return _diff(root, change.path, old, new)


def _hunks(file: FilePatch, root: str) -> Iterator[wire.FileEditToolCallContent | None]:
    if not file.hunks or file.mode == EXECUTABLE or file.operation not in {FileOperation.MODIFY, FileOperation.CREATE}:
        yield None
        return
    for hunk in file.hunks:
        old = None if file.operation is FileOperation.CREATE else _text(hunk.old)
        yield _diff(root, file.path, old, _text(hunk.new))


def _diff(root: str, path: str, old: str | None, new: str) -> wire.FileEditToolCallContent | None:
    if shown(path) != path:
        return None
    return wire.FileEditToolCallContent(type="diff", path=path_in(root, path), old_text=old, new_text=new)


def _text(lines: Sequence[HunkLine]) -> str:
    return "".join(f"{line.text}\n" if line.newline else line.text for line in lines)
