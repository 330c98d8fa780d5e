"""What is asked of the code search, what it finds and why, and how far its index is."""

from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.ids import CommitId
from agent_workbench.core.recorded_value import RecordedValue

# How vectors stand where the settings want none, which is no news.
VECTORS_UNWANTED = "off (retrieval.embeddings.provider)"


class CodeQuery(Struct, frozen=True):
    """What code is looked for: words that describe it, and the output of what `failing` last (empty: nothing did)."""

    text: str
    failing: str = ""


class SignalKind(StrEnum):
    """What may speak for a piece of code."""

    NAMED = "named"  # the query names the file, a line in the piece, or what the piece defines
    WORDS = "words"
    SYMBOL = "symbol"
    PATH = "path"
    FOLDER = "folder"
    COMMENTS = "comments"
    BESIDE = "beside"  # another piece of the file hits
    HISTORY = "history"
    RECENT = "recent"  # much was done to the file lately
    CALLS = "calls"
    VECTOR = "vector"


class Signal(RecordedValue, frozen=True):
    """One reason why a piece came: its share of the score (all of a piece sum to 1), and the words it hit on."""

    kind: SignalKind
    share: float
    words: tuple[str, ...] = ()


class Chunk(RecordedValue, frozen=True):
    """Lines `first_line` to `last_line` (from 1, inclusive) of a file, as they were when they were found.

    `why` holds the words of the query that hit, best first; `tokens` is an estimate until the server counts. `signals`
    tell what the score is made of, largest first.
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

    @property
    def place(self) -> str:
        """`path:first-last`."""
        return f"{self.path}:{self.first_line}-{self.last_line}"


class IndexStatus(Struct, frozen=True):
    """How far the index of a folder is: files read of those that had to be, and what it holds now.

    `left_out` are files that are not searched because they are too large, or too many; `binary` ones hold no text,
    cannot be read or are more than a grammar bears; `submodules` are repositories of their own. `unsaved` says why the
    index is kept for this session alone, empty while it is saved or not worth it. `vectors` says in a few words how the
    vectors stand (`ready`, `learning`, or why there are none), `VECTORS_UNWANTED` where nobody asked for them.
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
        """Whether everything that had to be read was read."""
        return self.done >= self.total


class PastCommit(Struct, frozen=True):
    """A commit of the past: its message and the paths that it touched."""

    id: CommitId
    message: str
    paths: tuple[str, ...]
