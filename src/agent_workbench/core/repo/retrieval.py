"""Code search: its query, its results with their reasons, and the progress of its index."""

from collections.abc import Collection, Mapping
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


class CodeQuery(Struct, frozen=True):
    """A query: words that describe the code, and the output of what is `failing` (empty: nothing is).

    Code in `files` comes first. Of others, files below `floor` (a share of the best file's score) are left out.
    """

    text: str
    failing: str = ""
    files: tuple[str, ...] = ()
    floor: float = 0.0


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
