"""Reasons for a search result as bars and words, and the progress of the index."""

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.repo.retrieval import VECTORS_UNWANTED, Chunk, IndexStatus
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

WORD_CHARS = 40
MAX_WORDS = 6
_NO_NEWS = frozenset({"", "ready", VECTORS_UNWANTED})


class Reason(Struct, frozen=True):
    """One signal: its name, its share of the score (0 to 1), and the matched words."""

    name: str
    share: float
    words: tuple[str, ...] = ()


def reasons_of(chunk: Chunk) -> tuple[Reason, ...]:
    """Return the reasons for a result, strongest first; none if they were not recorded."""
    told = sorted(chunk.signals, key=lambda signal: -signal.share)
    return tuple(Reason(str(each.kind), each.share, _words(each.words)) for each in told if each.share > 0)


def matched_words(chunk: Chunk) -> tuple[str, ...]:
    """Return the matched words of the query, best first."""
    return _words(chunk.why or tuple(dict.fromkeys(word for each in chunk.signals for word in each.words)))


def share_bar(share: float, cells: int) -> str:
    """Return a bar of at most `cells` cells for a share from 0 to 1, in half cells; any share above 0 is visible."""
    halves = min(2 * cells, max(1, round(2 * cells * share))) if share > 0 else 0
    return f"{'█' * (halves // 2)}{'▌' * (halves % 2)}"


def index_words(status: IndexStatus) -> tuple[str, ...]:
    """Return the progress of an index and what is not searched, a few words each; none without an index."""
    left_out = _left_out(status)
    if not status.complete:
        said = f"indexing {status.done:,} of {status.total:,} files"
    elif status.files:
        said = f"{counted_text(status.files, 'file')}, {counted_text(status.chunks, 'piece')} indexed"
    elif left_out:
        said = "nothing indexed"
    else:
        return ()
    unsaved = f"not saved: {sanitize_line(status.unsaved, 160)}" if status.unsaved else ""
    return tuple(filter(None, (said, unsaved, vector_words(status), left_out)))


def vector_words(status: IndexStatus) -> str:
    """Return the state of the vectors, empty if they are ready or not wanted."""
    return f"vectors: {sanitize_line(status.vectors, 300)}" if status.vectors not in _NO_NEWS else ""


def index_line(status: IndexStatus) -> str:
    """Return the same as one line that starts with what is wrong, for narrow places."""
    first = index_words(replace(status, vectors="", unsaved="", left_out=0, binary=0, submodules=0))
    rest = index_words(status)[len(first) :]
    told = rest if status.complete and (status.unsaved or vector_words(status)) else ()
    return " · ".join((*told, *first) if told else (*first, *rest))


def _left_out(status: IndexStatus) -> str:
    told = (
        (status.left_out, f"{counted_text(status.left_out, 'file')} (too large, or too many)"),
        (status.binary, f"{status.binary:,} (binary, or unreadable)"),
        (status.submodules, counted_text(status.submodules, "submodule")),
    )
    said = ", ".join(text for many, text in told if many)
    return f"left out: {said}" if said else ""


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sanitize_line(word, WORD_CHARS) for word in words[:MAX_WORDS])
