"""Texts of found chunks, whole files or joined neighbours, each with its imports and definitions."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.chunker import CHARS_PER_TOKEN
from agent_workbench.adapters.retrieval.index.segments import blob_id
from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of
from agent_workbench.adapters.retrieval.scoring import FoundChunk
from agent_workbench.core.patch.docstrings import short_functions, with_short_docstrings
from agent_workbench.core.patch.left_out_text import PYTHON, is_unwritten
from agent_workbench.core.repo.path_kinds import is_test
from agent_workbench.core.repo.retrieval import GAP, Chunk, import_statements

# A file is whole if it is at most this many times as large as a chunk.
_WHOLE_RATIO = 1.5
# Lines of a comment above a passage that are more than a model should copy.
_LONG_COMMENT = 4
# Chunks of one definition with at most this many lines between them are one passage.
_GAP_LINES = 4
_MAX_REASONS = 6
# More than a model or a screen shows at once; further down a context would cost more than the search.
_MAX_WITH_CONTEXT = 12
# A longer line, such as a table in one string, costs a prompt more than it tells.
_MAX_LINE_CHARS = 500

_MAX_IMPORTS, _MAX_AROUND = 6, 4
_MAX_CONTEXT_LINE_CHARS = 200
_OUTER_ROWS = 2_000
_CLOSER = re.compile(r"\s*[)\]}]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEYWORDS = frozenset(
    {"from", "import", "as", "use", "using", "package", "const", "let", "var", "require", "type", "crate", "self"}
    | {"super", "pub", "static", "default"}
)


class Passages(Struct, frozen=True):
    """Chunks with their texts, best first; `is_current` is False if a file changed since it was indexed."""

    chunks: tuple[Chunk, ...]
    is_current: bool


class _LineSpan(Struct):
    """Chunks of one file, the best first, that become one passage: rows `first` to `last` (from 0)."""

    first: int
    last: int
    found: list[FoundChunk]


def passages(
    found: Sequence[FoundChunk], contents: Mapping[str, bytes], max_tokens: int, *, to_rewrite: bool = False
) -> Passages:
    """Return the texts of found chunks, best first; chunks of files that changed since are left out.

    `max_tokens` is the size of a chunk; `to_rewrite` as in `CodeQuery`.
    """
    by_path: dict[str, list[FoundChunk]] = {}
    for each in found:
        by_path.setdefault(each.path, []).append(each)
    rank = {(each.path, each.first_line): number for number, each in enumerate(found)}
    made: list[tuple[int, Chunk]] = []
    is_current = True
    # Of those that are to be rewritten, others may be left out.
    with_context = len(found) if to_rewrite else _MAX_WITH_CONTEXT
    for path, chunks in by_path.items():
        data = contents.get(path)
        if data is None or blob_id(data) != chunks[0].blob:
            is_current = False
            continue
        is_whole = len(data) <= max_tokens * CHARS_PER_TOKEN * _WHOLE_RATIO
        by_function = to_rewrite and not is_whole and path.endswith(PYTHON) and not is_test(path)
        needed = -1 if is_whole or by_function else max(each.last_line for each in chunks)
        lines = data.decode("utf-8", "replace").split("\n", needed)
        best = rank[path, chunks[0].first_line]
        with_imports = has_context = best < with_context and find_language(language_of(path)) is not None
        functions = _functions(lines, max_tokens) if by_function else ()
        for span in _spans(chunks, lines, functions, is_whole=is_whole):
            number = rank[path, span.found[0].first_line]
            context = ""
            if has_context and number < with_context:
                symbol = span.found[0].symbol if len({each.symbol for each in span.found}) == 1 else ""
                context = context_of(lines, span.first, span.last, symbol, with_imports=with_imports)
                with_imports = False
            if to_rewrite and not is_whole and (below := _below_comment(lines, span)) > span.first:
                said = next(filter(_NAME.search, lines[span.first : below]), lines[span.first])
                context = "\n".join(filter(None, (context.removesuffix(f"\n{GAP}"), _bounded(said), GAP)))
                span.first = below
            made.append((number, _chunk(span, lines, context, _shown_short if by_function else list)))
    return Passages(tuple(chunk for _, chunk in sorted(made, key=lambda each: each[0])), is_current)


def _functions(lines: Sequence[str], max_tokens: int) -> tuple[range, ...]:
    """Return the functions that are found whole. A cut line could not be put back, so they have none."""
    short = short_functions(lines, int(max_tokens * CHARS_PER_TOKEN * _WHOLE_RATIO))
    return tuple(each for each in short if all(len(line) <= _MAX_LINE_CHARS for line in lines[each.start : each.stop]))


def _shown_short(lines: Sequence[str]) -> Sequence[str]:
    return lines if is_unwritten(lines) else with_short_docstrings(lines)


def _below_comment(lines: Sequence[str], span: _LineSpan) -> int:
    """Return the row below a long comment that begins a passage of C, JavaScript and the like, its first without."""
    row, first = span.first, lines[span.first].lstrip()
    if first.startswith("/*"):
        row = next((at + 1 for at in range(row, span.last) if "*/" in lines[at]), row)
        is_alone = row > span.first and lines[row - 1].rstrip().endswith("*/")
        if not is_alone or sum(line.count("/*") for line in lines[span.first : row]) > 1:
            return span.first
    while first.startswith("//") and row < span.last and lines[row].lstrip().startswith("//"):
        row += 1
    is_code = not lines[row].lstrip().startswith(("//", "/*"))
    return row if is_code and row - span.first >= _LONG_COMMENT else span.first


def _spans(
    chunks: Sequence[FoundChunk], lines: Sequence[str], functions: Sequence[range], *, is_whole: bool
) -> Iterator[_LineSpan]:
    """Yield the passages of one file, that of its best chunk first; those within one of the functions are all of it."""
    if is_whole:
        last = len(lines) - 1
        yield _LineSpan(0, last - (last > 0 and not lines[last]), list(chunks))
        return
    spans: list[_LineSpan] = []
    for each in sorted(chunks, key=lambda each: each.first_line):
        first, last = each.first_line - 1, min(each.last_line, len(lines)) - 1
        around = next((one for one in functions if one.start <= first and last < one.stop), range(first, last + 1))
        first, last = around.start, around.stop - 1
        before = spans[-1] if spans else None
        # A passage is what a model rewrites whole: one definition, not the end of one and the next.
        near = before and before.found[0].symbol == each.symbol and first - before.last - 1 <= _GAP_LINES
        if before and (near or first <= before.last):
            spans[-1].last = max(last, spans[-1].last)
            spans[-1].found.append(each)
        else:
            spans.append(_LineSpan(first, last, [each]))
    order = {id(each): number for number, each in enumerate(chunks)}
    for span in spans:
        span.found.sort(key=lambda each: order[id(each)])
    yield from sorted(spans, key=lambda span: order[id(span.found[0])])


def _chunk(
    span: _LineSpan, lines: Sequence[str], context: str, shown: Callable[[Sequence[str]], Sequence[str]]
) -> Chunk:
    """Return the passage; its size is that of the lines that are `shown` of it."""
    best, bounded = span.found[0], [_bounded(line) for line in lines[span.first : span.last + 1]]
    reasons = dict.fromkeys(word for each in span.found for word in each.why)
    return Chunk(
        best.path,
        span.first + 1,
        span.last + 1,
        "\n".join(bounded),
        best.score,
        best.symbol,
        tuple(reasons)[:_MAX_REASONS],
        -(-(len("\n".join(shown(bounded))) + len(context)) // CHARS_PER_TOKEN),
        best.signals,
        context,
    )


def _bounded(line: str) -> str:
    left = len(line) - _MAX_LINE_CHARS
    return line if left <= 0 else f"{line[:_MAX_LINE_CHARS]} … {left} characters cut …"


def context_of(lines: Sequence[str], first: int, last: int, symbol: str, *, with_imports: bool) -> str:
    """Return the context of the rows `first` to `last` (from 0) of a file, a gap as `…`; empty if there is none.

    `symbol` names the definitions around the chunk, separated by dots.
    """
    rows = [] if symbol.count(", ") else list(_around(lines, first, set(_NAME.findall(symbol))))
    found: list[str] = []
    if with_imports:
        words = {word for line in lines[first : last + 1] for word in _NAME.findall(line[:_MAX_CONTEXT_LINE_CHARS])}
        found += _used_imports(lines[:first], words)
    for row in rows:
        if found:
            found.append(GAP)
        found.append(lines[row][:_MAX_CONTEXT_LINE_CHARS].rstrip())
    if found and not (rows and rows[-1] == first - 1):
        found.append(GAP)
    return "\n".join(found)


def _around(lines: Sequence[str], first: int, names: set[str]) -> Iterator[int]:
    """Return the rows above `first` that begin a definition around it: indented less, and with one of the names."""
    rows: list[int] = []
    start = next((line for line in lines[first:] if line.strip()), "")
    depth = _indent(start)
    for row in range(first - 1, max(-1, first - _OUTER_ROWS), -1):
        line = lines[row]
        if depth == 0 or len(rows) == _MAX_AROUND:
            break
        # The end of a signature of several lines is at the depth of its beginning.
        if not line.strip() or _indent(line) >= depth or _CLOSER.match(line):
            continue
        depth = _indent(line)
        if not names.isdisjoint(_NAME.findall(line[:_MAX_CONTEXT_LINE_CHARS])):
            rows.append(row)
    yield from reversed(rows)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _used_imports(lines: Sequence[str], words: set[str]) -> list[str]:
    """Return the import lines that have one of the words."""
    found: list[str] = []
    for rows in import_statements(lines):
        statement = lines[rows.start : rows.stop]
        used = [line for line in statement if not words.isdisjoint(_imported(line))]
        if len(statement) > 1 and used:
            used = [line for line in statement if line in used or line in (statement[0], statement[-1])]
        if len(found) + len(used) > _MAX_IMPORTS:
            break
        found += used
    return [line[:_MAX_CONTEXT_LINE_CHARS].rstrip() for line in found]


def _imported(line: str) -> Iterable[str]:
    return (name for name in _NAME.findall(line) if name not in _KEYWORDS)
