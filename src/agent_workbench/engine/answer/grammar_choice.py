"""Choice of the grammar for a prompt: the tools that are of use, and the lines that a diff may quote."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.events import FAILING_FIRST, SHORT_DOCSTRINGS, ContextCompacted, Recorded
from agent_workbench.core.model import Purpose
from agent_workbench.core.patch.comparison import shared_blocks
from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules, new_file_rules
from agent_workbench.core.patch.file_lines import FileLines
from agent_workbench.core.patch.file_piece import FilePiece, locate
from agent_workbench.core.patch.hunk_rules import EditableFile, editable, text_lines
from agent_workbench.core.patch.left_out_text import is_unwritten
from agent_workbench.core.patch.paths import fold_path, matches_glob, takes_place_of
from agent_workbench.core.patch.piece_grammar import piece_rules
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.file_pieces import offered_pieces, sent_chunks
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.tools.arguments import Choices
from agent_workbench.core.tools.spec import FINISH, NOTE, REMEMBER, ToolSpec
from agent_workbench.engine.answer.grammar import reflexion_grammar, step_grammar, summary_grammar
from agent_workbench.engine.prompt.step_history import failed_attempts
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles, ToolContext
from agent_workbench.engine.tools.registry import builtin_tools

READ_FILE = "read_file"
WRITES = "It is not written yet, so all of it comes now."
LOOKUPS = frozenset({READ_FILE, "list_files", "grep", "search_code"})
"""Tools that look into files."""
MOST_SMALL = 12
"""A repository with more files is never wholly in the prompt."""

MAX_OFFERED_LINES = 600
MAX_OFFERED_BYTES = 60_000
MAX_FILES = 12
"""Limits of the cost of a grammar; the lines that were shown longest ago are left out first."""
WHOLE_LINES = 1_000
"""Moved chunks are aligned with the whole file if it has at most so many lines."""


async def choose_grammar(session: SessionContext, purpose: Purpose) -> str:
    """Return the grammar (GBNF) for the next answer to this purpose."""
    if purpose is not Purpose.EXECUTOR:
        return fixed_grammar(purpose)
    context = await session.tool_context()
    return await possible_steps_grammar(context.scope, context.workspace)


def fixed_grammar(purpose: Purpose) -> str:
    """Return the grammar for a summary or a reflexion, which depends on no files; empty for other purposes."""
    if purpose is Purpose.SUMMARY:
        return summary_grammar()
    return reflexion_grammar() if purpose is Purpose.REFLEXION else ""


async def chat_grammar(context: ToolContext, specs: Sequence[ToolSpec]) -> str:
    """Return the grammar for an answer in a chat: a reply, or a call of one of these tools that is possible now."""
    present, tools = _ListedOnce(context.files), builtin_tools()
    choices = {spec.name: await tools[spec.name].choices(context.scope, present) for spec in specs if spec.builtin}
    sensible = {name: found for name, found in choices.items() if found is not None}
    offered = [spec for spec in specs if spec.name in sensible or spec.name not in choices]
    return await asyncio.to_thread(step_grammar, offered, (), sensible, replies=True)


async def possible_steps_grammar(scope: TaskBounds, present: TaskFiles) -> str:
    """Return the grammar for a step: only tools and arguments that are possible with these files."""
    present = _ListedOnce(present)
    specs, tools = scope.run.specs, builtin_tools()
    choices = {spec.name: await tools[spec.name].choices(scope, present) for spec in specs if spec.name in tools}
    sensible = {name: found for name, found in choices.items() if found is not None}
    possible = [spec for spec in specs if spec.name in sensible or spec.name not in choices] or specs
    offered, useful = await useful_tools(scope, present, possible, sensible)
    diff: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()
    standing: tuple[FilePiece, ...] = ()
    if any(spec.raw for spec in offered):
        edits = await edit_scope(scope, present)
        if any(spec.raw and not spec.fenced for spec in offered):
            diff = await asyncio.to_thread(diff_rules, edits)
        if any(spec.fenced for spec in offered):
            standing = await standing_pieces(scope, present)
            pieces = await asyncio.to_thread(_piece_rules, scope.run, standing, edits)
    if not await asyncio.to_thread(_only_writes, scope.run, standing):
        return await asyncio.to_thread(step_grammar, offered, diff, useful, pieces)
    writing = [spec for spec in offered if spec.fenced]
    return await asyncio.to_thread(step_grammar, writing, diff, useful, pieces, thought=WRITES)


def _only_writes(run: TaskRun, pieces: Sequence[FilePiece]) -> bool:
    """Return True for an answer that writes code that was not written yet; every second attempt thinks before.

    A small model that thinks of why nothing works writes less of what would: in a function without a body there is no
    defect to be found.
    """
    if not run.tries_afresh or run.changed or failed_attempts(run) % 2:
        return False
    # Nothing is changed, so the first version of each piece stands.
    return is_unwritten([line for piece in pieces for line in piece.versions[0]])


def _piece_rules(run: TaskRun, pieces: Sequence[FilePiece], edits: EditScope) -> tuple[str, ...]:
    # Where imports may follow, a small model writes them in every second answer: as they are, or the module's own.
    alternates = run.wording >= SHORT_DOCSTRINGS and run.tries_afresh
    follow = not alternates or failed_attempts(run) % 2 == 1
    if pieces and run.failed_before and not run.changed:
        return piece_rules(pieces, (), (), imports_follow=follow)
    near = tuple(sorted({piece.path.rpartition("/")[0] for piece in pieces}))
    names, name_rules = new_file_rules(edits.existing, edits.bounds, near)
    return piece_rules(pieces, names, name_rules, imports_follow=follow)


class _ListedOnce:
    """Cache of the list of files: in a large repository, listing takes longer than all the rest."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files
        self._paths: tuple[str, ...] | None = None

    async def list_files(self) -> tuple[str, ...]:
        if self._paths is None:
            self._paths = await self._files.list_files()
        return self._paths

    async def read(self, path: str) -> FileContent | None:
        return await self._files.read(path)


async def useful_tools(
    scope: TaskBounds, present: TaskFiles, specs: Sequence[ToolSpec], choices: Mapping[str, Choices]
) -> tuple[tuple[ToolSpec, ...], Mapping[str, Choices]]:
    """Return the specs and choices without calls whose result the prompt shows already, or that would be refused.

    All of them if no change is left to make then, and for a scripted model, whose answers are given.
    """
    run, facts = scope.run, scope.state.model
    if run.wording < FAILING_FIRST or (facts is not None and facts.scripted):
        return tuple(specs), choices
    useless = set(_useless(run))
    if _looks_again(run.history):
        useless |= LOOKUPS
    readable = [path for path in await present.list_files() if scope.may_read(path)]
    whole = await _shown_whole(run, present, readable)
    if whole and whole.issuperset(readable):
        useless |= LOOKUPS
    kept = tuple(spec for spec in specs if spec.name not in useless)
    left = dict(choices)
    if paths := left.get(READ_FILE, {}).get("path"):
        left[READ_FILE] = {**left[READ_FILE], "path": tuple(path for path in paths if path not in whole) or paths}
    return (kept, left) if any(spec.raw for spec in kept) else (tuple(specs), choices)


def _useless(run: TaskRun) -> Iterable[str]:
    unchanged = not run.changed
    if unchanged and run.failed_before and offered_pieces(run).pieces:
        # The first thing to do is a change of the code that the prompt shows.
        yield from (NOTE, REMEMBER, FINISH, "run_tests", "static_analyze", "write_diff")
    elif run.results is not None and run.checked_tree == run.tree:
        yield "run_tests"
        if not run.passes:
            yield FINISH


def _looks_again(history: Sequence[Recorded]) -> bool:
    """Return True if the newest two calls are the same look into files: a third would tell nothing either."""
    newest = tuple((step.first.tool, step.first.text) for step in islice(newest_steps(history), 2))
    return len(newest) == 2 and newest[0] == newest[1] and newest[0][0] in LOOKUPS


async def _shown_whole(run: TaskRun, present: TaskFiles, readable: Sequence[str]) -> frozenset[str]:
    """Return the paths of the files of which the prompt shows every line as it is now."""
    if len(readable) > MOST_SMALL:
        return frozenset()
    shown: dict[str, list[Chunk]] = {}
    for chunk in await asyncio.to_thread(shown_chunks, run.history):
        shown.setdefault(chunk.path, []).append(chunk)
    return frozenset([path for path in readable if path in shown and await _is_whole(present, path, shown[path])])


async def _is_whole(present: TaskFiles, path: str, chunks: Sequence[Chunk]) -> bool:
    text = await text_of(present, path)
    return text is not None and any(chunk.text.rstrip("\n") == text.rstrip("\n") for chunk in chunks)


def shown_chunks(history: Sequence[Recorded]) -> tuple[Chunk, ...]:
    """Return the chunks of files in a prompt made of these events, the newest first."""
    compacted = next((each for each in reversed(history) if isinstance(each.event, ContextCompacted)), None)
    through = compacted.event.through_seq if compacted and isinstance(compacted.event, ContextCompacted) else -1
    found: list[Chunk] = []
    for recorded, chunks in reversed(tuple(sent_chunks(history))):
        if recorded.seq > through:
            found += chunks
    return tuple(found)


def offered_lines(lines: Sequence[str], chunks: Iterable[Chunk]) -> Iterator[int]:
    """Yield the indices of those `lines` of a file that were shown, in the order of `chunks`.

    A chunk is looked up at its own line numbers, then aligned by its content. Alignment may find another line with the
    same text, so every index is of a line that the file has now.
    """
    standing: dict[str, int] | None = None
    for chunk in chunks:
        shown = [line.removesuffix("\r") for line in chunk.text.split("\n")]
        first = chunk.first_line - 1
        if shown[-1] == "" and len(shown) > max(1, chunk.last_line - first):
            shown.pop()
        if lines[first : first + len(shown)] == tuple(shown):
            yield from range(first, first + len(shown))
            continue
        if standing is None:
            standing = _standing_once(lines)
        yield from _moved(lines, shown, standing)


def _standing_once(lines: Sequence[str]) -> dict[str, int]:
    """Return the index of each line that occurs once."""
    counts = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}


def _moved(lines: Sequence[str], shown: Sequence[str], standing: Mapping[str, int]) -> Iterator[int]:
    """Yield the indices of shown lines that moved; of a large file only the relevant part is aligned."""
    low, high = 0, len(lines)
    if len(lines) > WHOLE_LINES:
        found = [standing[line] for line in shown if line in standing]
        if not found:
            return
        low, high = max(0, min(found) - len(shown)), max(found) + len(shown) + 1
    old, new = [(line, True) for line in shown], [(line, True) for line in lines[low:high]]
    for block in shared_blocks(old, new):
        yield from range(low + block.new, low + block.new + block.size)


async def edit_scope(scope: TaskBounds, present: TaskFiles) -> EditScope:
    """Return the files that the next diff may change: those that the prompt shows, and new ones."""
    chunks: dict[str, list[Chunk]] = {}
    for chunk in shown_chunks(scope.run.history):
        chunks.setdefault(chunk.path, []).append(chunk)
    bounds = scope.patch_bounds()
    lines_left, bytes_left = MAX_OFFERED_LINES, MAX_OFFERED_BYTES
    files: list[EditableFile] = []
    for path, shown in chunks.items():
        if len(files) >= MAX_FILES:
            break
        lines = await _lines(present, path) if _may_be_changed(scope, bounds, path) else None
        if lines is None:
            continue
        sizes = await asyncio.to_thread(_within, lines.bare, shown, lines_left, bytes_left)
        lines_left, bytes_left = lines_left - len(sizes), bytes_left - sum(sizes.values())
        if sizes or not len(lines):
            files.append(editable(path, lines, sizes))
    existing = await present.list_files()
    return EditScope(tuple(files), existing, bounds, scope.task.constraints.max_files_changed)


async def standing_pieces(scope: TaskBounds, present: TaskFiles) -> tuple[FilePiece, ...]:
    """Return the pieces that the prompt offers and that the files still have, those shown last first."""
    bounds = scope.patch_bounds()
    files: dict[str, FileLines | None] = {}
    standing: list[FilePiece] = []
    for piece in reversed((await asyncio.to_thread(offered_pieces, scope.run)).pieces):
        if piece.path not in files:
            files[piece.path] = (
                await _lines(present, piece.path) if _may_be_changed(scope, bounds, piece.path) else None
            )
        lines = files[piece.path]
        found = await asyncio.to_thread(locate, piece, lines.bare) if lines is not None else None
        if lines is not None and found is not None:
            standing.append(replace(piece, whole=len(found) == len(lines)))
    return tuple(standing)


def _within(lines: Sequence[str], chunks: Iterable[Chunk], most_lines: int, most_bytes: int) -> dict[int, int]:
    """Return the indices of the offered lines within the limits, with the size of each in bytes."""
    sizes: dict[int, int] = {}
    if most_lines <= 0:
        return sizes
    for at in offered_lines(lines, chunks):
        if at in sizes:
            continue
        size = len(lines[at].encode("utf-8", "surrogatepass")) + 1
        if size <= most_bytes:
            sizes[at] = size
            most_bytes -= size
        if len(sizes) >= most_lines or most_bytes <= 0:
            break
    return sizes


def _may_be_changed(scope: TaskBounds, bounds: PatchBounds, path: str) -> bool:
    folded = fold_path(path)
    return (
        path.isprintable()
        and scope.may_read(path)
        and any(matches_glob(path, glob) for glob in bounds.write_globs)
        and not any(matches_glob(folded, fold_path(glob)) for glob in bounds.protected_globs)
        and not any(takes_place_of(path, judge) for judge in bounds.judges)
    )


async def text_of(present: TaskFiles, path: str) -> str | None:
    """Return the text of a file with line feeds alone as line ends; None if there is none, or it is no text."""
    lines = await _lines(present, path)
    return None if lines is None else "\n".join(lines.bare)


async def _lines(present: TaskFiles, path: str) -> FileLines | None:
    try:
        content = await present.read(path)
    except WorkspaceError:
        return None
    return None if content is None else text_lines(content)
