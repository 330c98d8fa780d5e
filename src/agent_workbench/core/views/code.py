"""The code pane: what the search brought for the model, why, and what it costs."""

from dataclasses import dataclass

from agent_workbench.core.events import CodeRetrieved
from agent_workbench.core.inert import inert, inert_line
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.state import Phase, SessionState
from agent_workbench.core.views.tones import Block, Entry, Tone

PREVIEW_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One chunk: its entry in the list, and its text for the preview, with the line it starts at."""

    entry: Entry
    path: str
    preview: str
    first_line: int


@dataclass(frozen=True, slots=True)
class CodeView:
    """The chunks, best first."""

    title: str
    rows: tuple[CodeRow, ...]
    empty: str


def view_code(state: SessionState) -> CodeView:
    """Return what the code pane shows: the newest search of the current run."""
    found = _newest(state)
    if found is None:
        return CodeView("Retrieved code", (), _nothing_yet(state))
    tokens = sum(chunk.tokens for chunk in found.chunks)
    many = len(found.chunks)
    title = f"Retrieved code · {many} piece{'' if many == 1 else 's'}" + (f" · {tokens:,} tokens" if tokens else "")
    empty = f"the search for “{inert_line(found.query, 100)}” found nothing"
    return CodeView(title, tuple(_row(number, chunk) for number, chunk in enumerate(found.chunks, 1)), empty)


def _newest(state: SessionState) -> CodeRetrieved | None:
    if state.run is None:
        return None
    events = (recorded.event for recorded in reversed(state.run.history))
    return next((event for event in events if isinstance(event, CodeRetrieved)), None)


def _nothing_yet(state: SessionState) -> str:
    if state.run is not None and state.run.phase in (Phase.BASELINE, Phase.RETRIEVING):
        return "the code that fits the task is searched for after the first checks"
    return "the code that is put before the model stands here once a task runs"


def _row(number: int, chunk: Chunk) -> CodeRow:
    symbol = f"  {inert_line(chunk.symbol, 120)}" if chunk.symbol else ""
    facts = (
        f"score {chunk.score:.2f}",
        f"{chunk.tokens:,} tokens" if chunk.tokens else "",
        f"for {', '.join(inert_line(word, 40) for word in chunk.why[:6])}" if chunk.why else "",
    )
    head = Block(f"{inert_line(chunk.place, 300)}{symbol}", Tone.STRONG, f"{number}", Tone.NUMBER)
    return CodeRow(
        Entry(f"{number}:{chunk.place}", (head, Block(" · ".join(filter(None, facts)), Tone.DIM))),
        path=chunk.path,
        preview=inert(chunk.text.rstrip("\n"), limit_chars=PREVIEW_CHARS),
        first_line=chunk.first_line,
    )
