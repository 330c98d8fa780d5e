"""Code that the user asks for: looked up by place or by words, or shown as a whole file."""

import re
from collections.abc import Sequence

from msgspec import Struct

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import ChunkPinned
from agent_workbench.core.outcomes import CodeFound, FileOpened
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.skills import MOST_SKILLS
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.mentions import FileRange, looks_like_path, mention_of, mentioned_range, mentions
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.task.skill_choice import takable_skills

MOST_FOUND = 12
NAMESAKES = 3
MOST_LINES = 400
MOST_CHARS = 24_000
AROUND_LINES = 20
"""Lines shown before and after a line that no known piece of code covers."""
CHARS_PER_TOKEN = 4
MOST_FILE_LINES = 20_000
MOST_FILE_CHARS = 2_000_000
_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?)?:?")


async def find_code(session: SessionContext, asked: str) -> CodeFound:
    """Pin the code at the place that `asked` names, or search code and skills for it; raise `WorkbenchError`."""
    context = await session.tool_context()
    place = parse_code_place(asked, await context.workspace.list_files())
    if place is None:
        skills = await takable_skills(session.ports.skills, asked)
        return CodeFound(asked, await _search(context, asked, MOST_FOUND), skills[:MOST_SKILLS])
    found = await _at(context, place)
    if len(found) == 1 and all(chunk.place != found[0].place for chunk in session.run.pinned):
        await session.record(await pinned_chunk(context, found[0]))
    return CodeFound(asked, found)


async def pinned_chunk(context: ToolContext, chunk: Chunk) -> ChunkPinned:
    """Return the event that pins a chunk as a prompt shows it, with its file's imports if they are offered with it."""
    told, *imports = await context.for_prompt((chunk,))
    return ChunkPinned(told, imports=imports[0] if imports else None)


async def read_code(session: SessionContext, asked: str) -> Chunk:
    """Return the code at a place, as it is in the workspace now; raise `WorkspaceError` if there is none."""
    context = await session.tool_context()
    place = parse_code_place(asked, await context.workspace.list_files())
    if place is None:
        raise WorkspaceError(f"there is no code at {asked}", advice="name a file with its lines, such as src/a.py:1-20")
    return (await _at(context, place))[0]


class MentionedCode(Struct, frozen=True):
    """The code that words mention, and the reason for each mention that is left out."""

    pieces: tuple[Chunk, ...] = ()
    left_out: tuple[str, ...] = ()


async def pin_mentions(session: SessionContext, words: str) -> tuple[str, ...]:
    """Pin the code that the words mention and return a remark on each mention that could not be pinned."""
    asked = mentions(words)
    if not asked:
        return ()
    found = await read_mentions(await session.tool_context(), asked)
    for piece in found.pieces:
        if all(chunk.place != piece.place for chunk in session.run.pinned):
            await session.record(await pinned_chunk(await session.tool_context(), piece))
    return tuple(f"not pinned: {reason}" for reason in found.left_out)


async def read_mentions(context: ToolContext, asked: Sequence[str]) -> MentionedCode:
    """Return the code that mentions name, all of it together bounded as one piece of code is.

    Left out are files that usually hold secrets: what is mentioned is sent to the model.
    """
    paths = frozenset(await context.files.list_files())
    room, pieces, left_out = MOST_CHARS, list[Chunk](), list[str]()
    for each in asked:
        if holds_secrets(each.partition(":")[0]):
            left_out.append(f"{mention_of(each)} is a file that usually holds secrets")
            continue
        try:
            found = await _mentioned(context, each, paths)
        except WorkspaceError as error:
            left_out.append(str(error))
            continue
        if found is None:
            continue
        room -= len(found.text)
        if room < 0:
            left_out.append(f"with {mention_of(each)} it would be more than {MOST_CHARS:,} characters")
        else:
            pieces.append(found)
    return MentionedCode(tuple(pieces), tuple(left_out))


async def _mentioned(context: ToolContext, asked: str, paths: frozenset[str]) -> Chunk | None:
    """Return the code that a mention names, None for one that is not meant for a file; raise `WorkspaceError`."""
    place = mentioned_range(asked, paths)
    if place is None:
        if looks_like_path(asked):
            where = "the task's base" if context.opened is not None else "this repository"
            raise WorkspaceError(f"{mention_of(asked)} is no file of {where}")
        return None
    found = await _at(context, place)
    if len(found) > 1:
        raise WorkspaceError(long_mention(asked, found[-1].last_line))
    return found[0]


def long_mention(asked: str, lines: int) -> str:
    """Return why a file is not pinned as a whole, and what to mention instead."""
    return f"{mention_of(asked)} has {lines:,} lines; mention some, such as {mention_of(f'{asked}:1-100')}"


async def open_file(session: SessionContext, path: str, line: int) -> FileOpened:
    """Return a file of the workspace as it is now, cut if it is very long; raise `WorkspaceError`.

    `path` may be the end of the only path that ends so.
    """
    if not session.state.unfinished:
        raise WorkspaceError(f"{path} cannot be shown", advice="its workspace is open while its task is worked on")
    workspace = await session.workspace()
    place = parse_code_place(f"{path}:{line}", await workspace.list_files())
    path = place.path if place is not None else path
    content = await workspace.read(path)
    if content is None:
        raise WorkspaceError(f"there is no file {path!r} in the workspace")
    if b"\0" in content.data:
        raise WorkspaceError(f"{path!r} is binary ({len(content.data):,} bytes)")
    lines = content.data.decode("utf-8", "replace")[:MOST_FILE_CHARS].removesuffix("\n").split("\n")
    lines = lines[:MOST_FILE_LINES]
    return FileOpened(path, max(1, min(line, len(lines))), "\n".join(lines))


def parse_code_place(asked: str, paths: tuple[str, ...]) -> FileRange | None:
    """Return the file range that a text names, None for other words. The end of a path is enough if it is unique."""
    match = _PLACE.fullmatch(asked)
    if match is None:
        return None
    path, first, last = match["path"].removeprefix("./"), int(match["first"] or 0), int(match["last"] or 0)
    ends = [path] if path in paths else [each for each in paths if each.endswith(f"/{path}")]
    looks = "/" in path or "." in path or bool(first)
    return FileRange(ends[0], first, last) if len(ends) == 1 and (looks or ends == [path]) else None


async def _search(context: ToolContext, words: str, limit: int) -> tuple[Chunk, ...]:
    """Return the best matches for the words, from what is indexed so far."""
    retriever = context.ports.retriever
    status = retriever.status(context.files)
    built = status.complete and status.files > 0
    found = await retriever.search(context.files, CodeQuery(words), limit, complete=built)
    return tuple(chunk for chunk in found if context.may_read(chunk.path))


async def _at(context: ToolContext, place: FileRange) -> tuple[Chunk, ...]:
    """Return the named lines as one piece; a long file is returned in pieces to choose from."""
    context.check_readable(place.path)
    lines = await _lines(context, place.path)
    if place.first > len(lines):
        raise WorkspaceError(f"{place.path} has {counted_text(len(lines), 'line')}, line {place.first} was asked for")
    if place.last:
        return (_piece(place.path, lines, place.first, max(place.first, place.last)),)
    if place.first:
        named = await _search(context, f"{place.path}:{place.first}", NAMESAKES)
        around = [
            each for each in named if each.path == place.path and each.first_line <= place.first <= each.last_line
        ]
        first, last = max(1, place.first - AROUND_LINES), place.first + AROUND_LINES
        return (around[0],) if around else (_piece(place.path, lines, first, last),)
    whole = _piece(place.path, lines, 1, len(lines))
    if whole.last_line == len(lines):
        return (whole,)
    return tuple(_piece(place.path, lines, first, first + 99) for first in range(1, len(lines) + 1, 100))


async def _lines(context: ToolContext, path: str) -> list[str]:
    content = await context.files.read(path)
    if content is None:
        raise WorkspaceError(f"there is no file {path!r} any more")
    if b"\0" in content.data:
        raise WorkspaceError(f"{path!r} is binary ({len(content.data)} bytes), nothing of it can be shown to the model")
    if not content.data:
        raise WorkspaceError(f"{path!r} is empty")
    return content.data.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _piece(path: str, lines: list[str], first: int, last: int) -> Chunk:
    """Return lines `first` to `last` (from 1, inclusive), cut to the size of one piece."""
    kept: list[str] = []
    room = MOST_CHARS
    for line in lines[first - 1 : min(last, first + MOST_LINES - 1)]:
        if len(line) > room and kept:
            break
        kept.append(line[:room])
        room -= len(line) + 1
    text = "\n".join(kept)
    return Chunk(path, first, first + len(kept) - 1, text, 0.0, tokens=-(-len(text) // CHARS_PER_TOKEN))
