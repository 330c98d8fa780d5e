"""Import statements at the head of a source file, and the piece of code that they are."""

import re
from collections.abc import Iterable, Iterator, Sequence

from agent_workbench.core.repo.retrieval import Chunk

IMPORTS = "(imports)"
"""Symbol of the chunk with a file's imports; no definition has that name."""
MOST_ROWS = 60
"""Longest chunk of imports; of more the last ones are shown, below which others can be added."""
_LANGUAGES = re.compile(
    r"(pyi?|[mc]?[jt]s|[jt]sx|vue|go|rs|java|kts?|scala|groovy|cs|swift|dart|php|rb|c|h|cc|cpp|cxx|hh|hpp|hxx|mm?|hs|d|zig)"
)
# Imports are at the top; a statement of several lines ends soon.
_IMPORT_ROWS, _STATEMENT_ROWS, _GAP_ROWS = 200, 60, 6
_IMPORT = re.compile(
    r"from\s+\S+\s+import\b|import\b|(pub\s+)?use\s[^;]*[;{(]\s*$|(global\s+)?using\s[^;]*;|package\s+[\w.]+\s*;?\s*$"
    r"|(const|let|var)\s.{1,200}(\brequire\(|@import\()|\#\s*include\b|require(_relative|_once)?\s*\(?['\"]"
)
_OPEN, _CLOSED = re.compile(r"[({]\s*$"), re.compile(r"\s*[)}]")
# Between imports stand blank lines, comments, indented lines, and conditions on which something is imported.
_BETWEEN = re.compile(r"\s|$|//|/\*|\*|#|--|try\b|except\b|finally\b|if\b|else\b|elif\b|with\b|\}|\)")


def import_statements(lines: Sequence[str]) -> Iterator[range]:
    """Yield the rows (from 0) of each import at the top level of a file."""
    row, most = 0, min(len(lines), _IMPORT_ROWS)
    while row < most:
        end = row + 1
        if _IMPORT.match(lines[row]):
            if _OPEN.search(lines[row]):
                end = next(_ends(lines, row), row) + 1
            yield range(row, end)
        row = end


def _ends(lines: Sequence[str], row: int) -> Iterator[int]:
    return (each for each in range(row + 1, min(row + _STATEMENT_ROWS, len(lines))) if _CLOSED.match(lines[each]))


def imports_chunk(path: str, lines: Sequence[str], taken: Iterable[range]) -> Chunk | None:
    """Return the imports at the head of a file as a chunk, without the rows `taken` by other chunks and what follows.

    None if there are none, in a language without import statements too.
    """
    rows = _block(lines) if _LANGUAGES.fullmatch(path.lower().rpartition(".")[2]) else range(0)
    end = min([max(each.start, rows.start) for each in taken if each.stop > rows.start], default=rows.stop)
    rows = range(rows.start, min(rows.stop, end))[-MOST_ROWS:]
    if not rows:
        return None
    return Chunk(path, rows.start + 1, rows.stop, "\n".join(lines[rows.start : rows.stop]), 0.0, IMPORTS)


def _block(lines: Sequence[str]) -> range:
    """Return the rows from the first import to the last one that has no other code before it."""
    block = range(0)
    for statement in import_statements(lines):
        between = lines[block.stop : statement.start]
        if block and (len(between) > _GAP_ROWS or not all(map(_BETWEEN.match, between))):
            break
        block = range(block.start if block else statement.start, statement.stop)
    return block
