"""Code search: its query, its results with their reasons, import lines at their head, and the progress of its index."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import dropwhile

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.ids import CommitId
from agent_workbench.core.recorded_value import RecordedValue

# Share of the best file's score below which code is not worth a model's context.
RELEVANT = 0.35
GAP = "…"
"""Line of a chunk's context in place of lines that are left out."""
# State of the vectors if the settings want none; it is not worth showing.
VECTORS_UNWANTED = "off (retrieval.embeddings.provider)"

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


class CodeQuery(Struct, frozen=True):
    """A query: words that describe the code, and the output of what is `failing` (empty: nothing is).

    Code in `files` comes first. Of others, files below `floor` (a share of the best file's score) are left out.
    `to_rewrite`: a model writes the pieces anew, so they are whole functions where these are short, and omit long
    comments above them.
    """

    text: str
    failing: str = ""
    files: tuple[str, ...] = ()
    floor: float = 0.0
    to_rewrite: bool = False


class SignalKind(StrEnum):
    """Kinds of evidence for a result."""

    NAMED = "named"  # the query names the file, a line of the chunk, or a symbol it defines
    WORDS = "words"
    SYMBOL = "symbol"
    PATH = "path"
    FOLDER = "folder"
    SIBLINGS = "siblings"  # other files of its folder match
    COMMENTS = "comments"
    BESIDE = "beside"  # another chunk of the file matches
    HISTORY = "history"
    RECENT = "recent"  # the file changed often lately
    CALLS = "calls"
    VECTOR = "vector"


class Signal(RecordedValue, frozen=True):
    """One reason for a result: its share of the score (all sum to 1), and the query words it matched."""

    kind: SignalKind
    share: float
    words: tuple[str, ...] = ()


class Chunk(RecordedValue, frozen=True):
    """Lines `first_line` to `last_line` (from 1, inclusive) of a file, as they were when found.

    `why` holds the matched words of the query, best first. `tokens` is an estimate until the server counts. `signals`
    are the parts of the score, largest first. `context` are lines of the file above the chunk that explain it: the
    imports it uses, and the first lines of the definitions around it. `whole`: known to be all lines of the file.
    """

    path: str
    first_line: int
    last_line: int
    text: str
    score: float
    symbol: str = ""
    why: tuple[str, ...] = ()
    tokens: int = 0
    signals: tuple[Signal, ...] = ()
    context: str = ""
    whole: bool = False

    @property
    def place(self) -> str:
        """Location as `path:first-last`."""
        return f"{self.path}:{self.first_line}-{self.last_line}"

    @property
    def shown(self) -> str:
        """Location, context and text, as a model reads them."""
        head = f"{self.place}\n{self.context}" if self.context else self.place
        return f"{head}\n{self.text}"

    def without_context(self, lines: Collection[str]) -> "Chunk":
        """Return the chunk without these lines in its context."""
        left = (line for line in self.context.split("\n") if line not in lines)
        return replace(self, context="\n".join(dropwhile(GAP.__eq__, left)))

    def holds(self, path: str, line: int) -> bool:
        """Return True if a line is among these, of a file whose path is told absolute, relative, or by its end."""
        own, told = f"/{self.path}", f"/{path.removeprefix('./')}"
        return self.first_line <= line <= self.last_line and (own.endswith(told) or told.endswith(own))

    def covers(self, other: "Chunk") -> bool:
        """Return True if all lines of the other one are among these."""
        inside = self.first_line <= other.first_line and other.last_line <= self.last_line
        return self.path == other.path and inside


class Completion(Struct, frozen=True):
    """A file or symbol whose name fits what is typed. `place` is a path, or `path:first-last` for a `symbol`."""

    place: str
    symbol: str = ""


class IndexStatus(Struct, frozen=True):
    """Progress of a folder's index: files read of those to read, and what it holds now.

    `left_out` files are not searched because they are too large or too many. `binary` files hold no text or minified
    code, point to Git LFS, cannot be read, or are too large for a grammar. `submodules` are repositories of their own.
    `unsaved` is the reason why the index is kept for this session only, empty if it is saved or too small to save.
    `vectors` is the state of the vectors in a few words, `VECTORS_UNWANTED` if nobody asked for them.
    """

    done: int = 0
    total: int = 0
    files: int = 0
    chunks: int = 0
    left_out: int = 0
    binary: int = 0
    submodules: int = 0
    unsaved: str = ""
    vectors: str = ""

    @property
    def complete(self) -> bool:
        """True if everything was read."""
        return self.done >= self.total


class SnapshotFacts(Struct, frozen=True):
    """Saved index of one folder: its size, when it was `saved` (since the epoch), and True if the folder exists."""

    root: str
    bytes: int
    saved: float
    there: bool


class CacheFacts(Struct, frozen=True):
    """Content of the cache. `blobs` counts the contents that need not be parsed again."""

    folder: str
    bytes_by_kind: Mapping[str, int]
    blobs: int
    snapshots: tuple[SnapshotFacts, ...]
    writable: bool = True

    @property
    def total_bytes(self) -> int:
        """Total size."""
        return sum(self.bytes_by_kind.values())


class PastCommit(Struct, frozen=True):
    """A commit of the past: its message and the paths that it touched."""

    id: CommitId
    message: str
    paths: tuple[str, ...]


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
