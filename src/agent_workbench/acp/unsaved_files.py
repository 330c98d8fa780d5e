"""Unsaved and uncommitted content of the files that a prompt names, and the question whether a task begins with it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from acp import schema as wire
from msgspec import Struct

from agent_workbench.acp.editor import question
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.markdown import fenced_whole
from agent_workbench.core.text.mentions import mentioned_range
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.acp.thread import EditorThread

MAX_NAMED = 20
TITLE = "Begin with what is not committed?"
WITH, WITHOUT = "with", "without"
ABOUT = (
    "With it, the task begins on a commit of its own that holds all of this. Your files, index and branch stay as\n"
    "they are. The merge brings it too, so commit it yourself before you merge. Without it, the task begins at your\n"
    "last commit."
)


class NotCommitted(Struct, frozen=True):
    """Changes of the checkout: the texts of files that the editor did not save, and the paths of all others."""

    unsaved: Mapping[str, str]
    changed: tuple[str, ...]
    untracked: tuple[str, ...]

    @property
    def text(self) -> str:
        """The changes by kind, a line each."""
        kinds = (
            ("Not saved in the editor", tuple(self.unsaved)),
            ("Not committed", self.changed),
            ("Not tracked by git", self.untracked),
        )
        return "\n".join(f"{kind}: {_named(paths)}" for kind, paths in kinds if paths)


async def begins_with(thread: "EditorThread", mentions: Sequence[str]) -> tuple[dict[str, str] | None, str]:
    """Return the unsaved texts with which a task begins (None: at the last commit), and why it is not to begin.

    The user is asked where a file that the prompt mentions has changes that are not saved or not committed.
    """
    found = await _not_committed(thread, mentions)
    if found is None:
        return None, ""
    options = (
        wire.PermissionOption(option_id=WITH, name="Begin with these changes", kind="allow_once"),
        wire.PermissionOption(option_id=WITHOUT, name="Begin at the last commit", kind="reject_once"),
    )
    call = question(f"{thread.session}-base", TITLE, fenced_whole(f"{found.text}\n\n{ABOUT}"))
    chosen = await thread.editor.ask(thread.session, call, options)
    if chosen is None:
        return None, "The task was not started: nobody said what it begins with."
    return (dict(found.unsaved) if chosen == WITH else None), ""


async def _not_committed(thread: "EditorThread", mentions: Sequence[str]) -> NotCommitted | None:
    """Return what is not committed if a file that is mentioned is a part of it, else None."""
    repo = await thread.host.repo()
    facts, tracked = await asyncio.gather(repo.repository.inspect(), repo.repository.list_tracked())
    loaded = await asyncio.to_thread(repo.load)
    own = f"{loaded.settings.memory.dir.strip('/')}/"

    def foreign(paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path for path in paths if path != ".agent.yml" and not path.startswith(own))

    known = frozenset(foreign(tracked))
    ranges = (mentioned_range(each, known) for each in mentions)
    paths = tuple(dict.fromkeys(each.path for each in ranges if each is not None))
    unsaved = await _unsaved(thread, paths)
    changed = tuple(path for path in foreign(facts.dirty_paths) if path not in unsaved)
    if not unsaved and not set(paths) & set(changed):
        return None
    return NotCommitted(unsaved, changed, foreign(facts.untracked_paths))


async def _unsaved(thread: "EditorThread", paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of these files that the editor has and the disk has not, with the line ends of the disk."""
    if not thread.editor.reads_files:
        return {}
    disk = await (await (await thread.host.repo()).repository.checkout_files()).read_files(paths)
    found = {}
    for path, data in disk.items():
        text = await thread.editor.read(thread.session, f"{thread.roots[-1]}/{path}")
        try:
            saved = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        plain = text.replace("\r\n", "\n") if text is not None else None
        if plain is not None and plain != saved.replace("\r\n", "\n"):
            found[path] = plain.replace("\n", "\r\n") if "\r\n" in saved else plain
    return found


def _named(paths: Sequence[str]) -> str:
    named = ", ".join(sanitize_line(path, 200) for path in paths[:MAX_NAMED])
    more = len(paths) - MAX_NAMED
    return f"{named} and {counted_text(more, 'more file')}" if more > 0 else named
