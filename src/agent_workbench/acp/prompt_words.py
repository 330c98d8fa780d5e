"""Words of a prompt and the files that it names, with what is unsaved or uncommitted in them."""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from acp import schema as wire
from msgspec import Struct

from agent_workbench.acp.editor import question
from agent_workbench.core.text.amounts import counted_text, quoted
from agent_workbench.core.text.markdown import fenced_whole
from agent_workbench.core.text.mentions import mention_of, mentioned_range, without_mentions
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.acp.thread import EditorThread


Block = (
    wire.TextContentBlock
    | wire.ImageContentBlock
    | wire.AudioContentBlock
    | wire.ResourceContentBlock
    | wire.EmbeddedResourceContentBlock
)
MAX_BLOCKS = 200
MAX_EMBEDDED_CHARS = 4_000
MAX_URI_CHARS = 4_000
_LINES = re.compile(r"L(\d{1,7})(?:[:-]L?(\d{1,7}))?")

MAX_NAMED = 20
TITLE = "Begin with what is not committed?"
WITH, WITHOUT = "with", "without"
ABOUT = (
    "With it, the task begins on a commit of its own that holds all of this. Your files, index and branch stay as\n"
    "they are. The merge brings it too, so commit it yourself before you merge. Without it, the task begins at your\n"
    "last commit."
)


def prompt_words(blocks: Sequence[Block], roots: Iterable[str]) -> str:
    """Return the words of a prompt; a link to a file below one of the `roots` of the repository becomes a mention.

    Any other link is quoted, and the file behind it is not read; a text that comes with it is a part of the words.
    Images and sounds are named, because no model here takes them.
    """
    pieces = [*_pieces(blocks[:MAX_BLOCKS], tuple(roots))]
    if len(blocks) > MAX_BLOCKS:
        pieces.append(f"\n({len(blocks) - MAX_BLOCKS} more parts of the message are left out)")
    return "".join(pieces).strip()


def _pieces(blocks: Iterable[Block], roots: tuple[str, ...]) -> Iterator[str]:
    for block in blocks:
        match block:
            case wire.TextContentBlock():
                yield block.text
            case wire.ResourceContentBlock():
                yield f" {_link(block.uri, roots)} "
            case wire.EmbeddedResourceContentBlock():
                yield _embedded(block.resource, roots)
            case wire.ImageContentBlock() | wire.AudioContentBlock():
                yield f" (an attachment of type {quoted(block.type)} is left out) "


def _embedded(resource: wire.TextResourceContents | wire.BlobResourceContents, roots: tuple[str, ...]) -> str:
    """Return the mention of a file of the repository, or the text that comes with any other resource."""
    path, _ = _file_of(resource.uri[:MAX_URI_CHARS])
    if isinstance(resource, wire.BlobResourceContents) or any(path.startswith(f"{root}{os.sep}") for root in roots):
        return f" {_link(resource.uri, roots)} "
    text = resource.text[:MAX_EMBEDDED_CHARS]
    more = len(resource.text) - len(text)
    cut = f"\n({more:,} more characters are left out)" if more else ""
    return f"\n{quoted(resource.uri, 200)}:\n{fenced_whole(without_mentions(text))}{cut}\n"


def _link(uri: str, roots: tuple[str, ...]) -> str:
    path, fragment = _file_of(uri[:MAX_URI_CHARS])
    for root in roots:
        if path and path.startswith(f"{root}{os.sep}"):
            lines = _LINES.match(fragment)
            place = f":{lines[1]}" + (f"-{lines[2]}" if lines[2] else "") if lines else ""
            name = Path(path).relative_to(root).as_posix()
            if '"' in name or not name.isprintable():  # the rest of it would be words, or another mention
                return f"({quoted(uri, 200)} has a name that cannot be mentioned, and is not read)"
            return mention_of(f"{name}{place}")
    return f"({quoted(uri, 200)} is outside of the repository and is not read)"


def _file_of(uri: str) -> tuple[str, str]:
    """Return the normalized path of a file's URI and its fragment; empty for the URI of anything else."""
    try:
        parts = urlsplit(uri)
        local = parts.scheme in {"", "file"} and parts.netloc in {"", "localhost"}
    except ValueError:
        return "", ""
    path = unquote(parts.path) if local else ""
    return (os.path.normpath(path), parts.fragment) if path.startswith("/") and "\0" not in path else ("", "")


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
