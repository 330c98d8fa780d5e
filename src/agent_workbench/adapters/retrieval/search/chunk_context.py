"""Context of a chunk: the imports that it uses, and the first lines of the definitions around it."""

import re
from collections.abc import Iterable, Iterator, Sequence

from agent_workbench.core.repo.import_lines import import_statements
from agent_workbench.core.repo.retrieval import GAP

_MAX_IMPORTS, _MAX_AROUND = 6, 4
_MAX_LINE_CHARS = 200
_OUTER_ROWS = 2_000
_CLOSER = re.compile(r"\s*[)\]}]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEYWORDS = frozenset(
    {"from", "import", "as", "use", "using", "package", "const", "let", "var", "require", "type", "crate", "self"}
    | {"super", "pub", "static", "default"}
)


def context_of(lines: Sequence[str], first: int, last: int, symbol: str, *, with_imports: bool) -> str:
    """Return the context of the rows `first` to `last` (from 0) of a file, a gap as `…`; empty if there is none.

    `symbol` names the definitions around the chunk, separated by dots.
    """
    rows = [] if symbol.count(", ") else list(_around(lines, first, set(_NAME.findall(symbol))))
    found: list[str] = []
    if with_imports:
        words = {word for line in lines[first : last + 1] for word in _NAME.findall(line[:_MAX_LINE_CHARS])}
        found += _used_imports(lines[:first], words)
    for row in rows:
        if found:
            found.append(GAP)
        found.append(lines[row][:_MAX_LINE_CHARS].rstrip())
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
        if not names.isdisjoint(_NAME.findall(line[:_MAX_LINE_CHARS])):
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
    return [line[:_MAX_LINE_CHARS].rstrip() for line in found]


def _imported(line: str) -> Iterable[str]:
    return (name for name in _NAME.findall(line) if name not in _KEYWORDS)
