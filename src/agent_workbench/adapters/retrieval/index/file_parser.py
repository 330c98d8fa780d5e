"""Parser of files: divides them into chunks at the definitions that tree-sitter finds, and builds their segment."""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.chunker import (
    Comment,
    Definition,
    IndexedChunk,
    Outline,
    chunk_text,
    markdown_outline,
    name_of,
    text_of,
)
from agent_workbench.adapters.retrieval.index.file_kinds import kind_of
from agent_workbench.adapters.retrieval.index.segments import Segment, SourceFile, blob_id
from agent_workbench.adapters.retrieval.index.source_languages import Language, find_language, language_of

if TYPE_CHECKING:
    import tree_sitter


# A file that takes longer to parse is not in the language of its name. CPU time of this thread: the result is cached,
# and must not depend on the machine's load.
_PARSE_SECONDS = 5.0
# The grammar reads the source in slices; other threads run between two of them.
_SLICE_BYTES = 16 * 1024
_DEEPEST = 12
# Source that does not fit the grammar becomes one error node, and the time of a query grows with the square of its size
# while all threads wait. (A progress callback could stop the query, but the library crashes then.)
_MAX_ERROR_WIDTH = 5_000
_NODES_LOOKED_AT = 100


class Stopped(Exception):
    """The work was cancelled by its caller."""


class ParsedBatch(Struct, frozen=True):
    """Segment of some files, and the number of those that no cache knew."""

    segment: Segment
    parsed: int


class FileParser:
    """Divides files into chunks, unless the cache has those of the same content. One batch at a time."""

    def __init__(self, cache: ChunkCache, max_tokens: int) -> None:
        self._cache = cache
        self._max_tokens = max_tokens
        self._syntax = OutlineParser()
        self._run_search = threading.Lock()

    def index(self, files: Mapping[str, bytes], stop: threading.Event | None = None) -> ParsedBatch:
        """Return a segment of the files (path to content); raise `Stopped` when `stop` is set meanwhile."""
        blobs = {path: blob_id(data) for path, data in files.items()}
        keys = {path: f"{blob}:{language_of(path)}:{self._max_tokens}" for path, blob in blobs.items()}
        with self._run_search:
            known = self._cache.find(keys.values())
            missing = {key: path for path, key in keys.items() if key not in known}
            known |= self._chunk_all(missing, files, stop)
        indexed = [SourceFile(path, blobs[path], kind_of(path, files[path]), known[keys[path]]) for path in files]
        return ParsedBatch(Segment.build(indexed), len(missing))

    def _chunk_all(
        self, missing: Mapping[str, str], files: Mapping[str, bytes], stop: threading.Event | None
    ) -> dict[str, tuple[IndexedChunk, ...]]:
        """Return the chunks by key and cache them, also those made before a stop."""
        found: dict[str, tuple[IndexedChunk, ...]] = {}
        lasting: dict[str, tuple[IndexedChunk, ...]] = {}
        try:
            for key, path in missing.items():
                if stop is not None and stop.is_set():
                    raise Stopped
                found[key], is_lasting = self._chunks_of(path, files[path])
                if is_lasting:
                    lasting[key] = found[key]
        finally:
            self._cache.store(lasting)
        return found

    def delete(self, blobs: Collection[str]) -> bool:
        """Delete the chunks of these contents from the cache; return True if there were any."""
        return self._cache.delete(blobs)

    def shrink_cache(self) -> None:
        """Bound the size of the cache."""
        self._cache.shrink()

    def _chunks_of(self, path: str, data: bytes) -> tuple[tuple[IndexedChunk, ...], bool]:
        """Return the chunks, and True if they may be cached: not while the grammar is missing."""
        text = data.decode("utf-8", "replace")
        language = language_of(path)
        if find_language(language) is None:
            outline: Outline | None = markdown_outline(text) if language == "markdown" else Outline()
        else:
            outline = self._syntax.outline(data, language)
        return chunk_text(text, outline or Outline(), self._max_tokens), outline is not None


class _Grammar(Struct, frozen=True):
    language: Language
    parser: "tree_sitter.Parser"
    query: "tree_sitter.Query"


class OutlineParser:
    """Tree-sitter grammars, each loaded for the first file of its language. For one thread at a time."""

    def __init__(self) -> None:
        self._grammars: dict[str, _Grammar | None] = {}

    def outline(self, source: bytes, language: str) -> Outline | None:
        """Return the outline of `source`, an empty one if parsing takes too long, None without a grammar."""
        if language not in self._grammars:
            known = find_language(language)
            self._grammars[language] = None if known is None else _load(known)
        grammar = self._grammars[language]
        if grammar is None:
            return None
        tree = _parse(grammar.parser, source)
        return Outline() if tree is None or _is_mostly_errors(tree) else _outline(grammar, tree, source)


def _load(language: Language) -> _Grammar | None:
    """Return the grammar, or None if its wheel is missing, broken or incompatible with the parser."""
    try:
        import tree_sitter

        entry = getattr(import_module(language.module), language.entry)
        grammar = tree_sitter.Language(entry())
        query = _query(grammar, language)
        return None if query is None else _Grammar(language, tree_sitter.Parser(grammar), query)
    except (ImportError, AttributeError, ValueError, TypeError, OSError, RuntimeError):
        return None


def _query(grammar: "tree_sitter.Language", language: Language) -> "tree_sitter.Query | None":
    """Return one query for all patterns, without those that this version of the grammar does not know."""
    patterns = [f"{pattern} @definition" for pattern in language.definitions]
    patterns += [f"{_capture_inner(pattern)}" for pattern in language.comments]
    # All patterns in one query, because each query reads the whole grammar; one by one only to find an unknown one.
    if (query := _query_or_none(grammar, patterns)) is not None:
        return query
    return _query_or_none(grammar, [pattern for pattern in patterns if _query_or_none(grammar, [pattern]) is not None])


def _query_or_none(grammar: "tree_sitter.Language", patterns: Sequence[str]) -> "tree_sitter.Query | None":
    """Return a query for the patterns, None if there are none or the grammar does not know one of them."""
    import tree_sitter

    try:
        return tree_sitter.Query(grammar, "\n".join(patterns)) if patterns else None
    except tree_sitter.QueryError:
        return None


def _capture_inner(pattern: str) -> str:
    """Return the pattern with its comment captured: of a docstring's statement the string alone."""
    return pattern.replace("(string)", "(string) @comment") if "(string)" in pattern else f"{pattern} @comment"


def _parse(parser: "tree_sitter.Parser", source: bytes) -> "tree_sitter.Tree | None":
    deadline = time.thread_time() + _PARSE_SECONDS
    try:
        return parser.parse(
            lambda offset, _: source[offset : offset + _SLICE_BYTES],
            progress_callback=lambda _offset, _has_error: time.thread_time() > deadline,
        )
    except ValueError:  # stopped at the deadline
        parser.reset()
        return None


def _is_mostly_errors(tree: "tree_sitter.Tree") -> bool:
    """Return True if much of the source is inside errors that are too wide to be searched, judged by some nodes."""
    if not tree.root_node.has_error:
        return False
    count = tree.root_node.descendant_count
    for number in range(0, count, max(1, count // _NODES_LOOKED_AT)):
        cursor = tree.walk()
        cursor.goto_descendant(number)
        for _ in range(_DEEPEST):
            if cursor.node is not None and cursor.node.is_error and cursor.node.child_count > _MAX_ERROR_WIDTH:
                return True
            if not cursor.goto_parent():
                break
    return False


def _outline(grammar: _Grammar, tree: "tree_sitter.Tree", source: bytes) -> Outline:
    import tree_sitter

    captures = tree_sitter.QueryCursor(grammar.query).captures(tree.root_node)
    comments = sorted(
        (Comment(node.start_point.row, text_of(node, source)) for node in captures.get("comment", ())),
        key=lambda each: each.row,
    )
    nodes = sorted(captures.get("definition", ()), key=lambda node: (node.start_byte, -node.end_byte))
    comment_kinds = {node.type for node in captures.get("comment", ())}
    return Outline(_nested(grammar.language, nodes, comment_kinds, source), tuple(comments))


class _OpenDefinition(Struct):
    """Definition whose end was not reached yet."""

    node: "tree_sitter.Node"
    inside: list[Definition]


def _nested(
    language: Language, nodes: Sequence["tree_sitter.Node"], comment_kinds: set[str], source: bytes
) -> tuple[Definition, ...]:
    leaders = language.leaders | comment_kinds
    root: list[Definition] = []
    open_: list[_OpenDefinition] = []

    def close() -> None:
        done = open_.pop()
        first, last = _rows(done.node, language.wrappers, leaders)
        definition = Definition(
            name_of(done.node, source, language.name), first, last, done.node.start_point.row, tuple(done.inside)
        )
        (open_[-1].inside if open_ else root).append(definition)

    for node in nodes:
        while open_ and open_[-1].node.end_byte <= node.start_byte:
            close()
        if len(open_) < _DEEPEST:
            open_.append(_OpenDefinition(node, []))
    while open_:
        close()
    return tuple(root)


def _rows(node: "tree_sitter.Node", wrappers: frozenset[str], leaders: frozenset[str] | set[str]) -> tuple[int, int]:
    """Return the rows of a definition with its wrappers and leaders."""
    first, last = node, node
    while first.parent is not None and first.parent.type in wrappers and not _has_twin(first.prev_named_sibling, node):
        first = first.parent
    while last.parent is not None and last.parent.type in wrappers and not _has_twin(last.next_named_sibling, node):
        last = last.parent
    row = first.start_point.row
    for leader in _leaders(first, leaders):
        row = leader.start_point.row
    return row, max(_last_row(last), row)


def _has_twin(sibling: "tree_sitter.Node | None", node: "tree_sitter.Node") -> bool:
    return sibling is not None and sibling.type == node.type


def _leaders(node: "tree_sitter.Node", kinds: frozenset[str] | set[str]) -> Iterator["tree_sitter.Node"]:
    """Yield comments and attributes right before `node`, nearest first, except those after code on their line."""
    row = node.start_point.row
    before = node.prev_named_sibling
    while before is not None and before.type in kinds and _last_row(before) >= row - 1:
        earlier = before.prev_named_sibling
        if earlier is not None and _last_row(earlier) == before.start_point.row and earlier.type not in kinds:
            return
        yield before
        row = before.start_point.row
        before = earlier


def _last_row(node: "tree_sitter.Node") -> int:
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row
