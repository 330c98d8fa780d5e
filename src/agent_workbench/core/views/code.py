"""The code pane: the pieces of code that were put before the model, why, what they cost, and whether they still are."""

from dataclasses import dataclass
from enum import Enum

from agent_workbench.core.events import CodeRetrieved, ContextCompacted
from agent_workbench.core.inert import inert, inert_line
from agent_workbench.core.retrieval import Chunk
from agent_workbench.core.state import Phase, SessionState, TaskRun
from agent_workbench.core.views.tones import Block, Entry, Tone

PREVIEW_CHARS = 20_000


class Standing(Enum):
    """Where a piece stands: a glyph beside it, how its name looks, and what is said of it."""

    IN_PROMPT = ("", Tone.STRONG, "")
    PINNED = ("◆", Tone.STRONG, "pinned")
    DROPPED = ("✗", Tone.GONE, "dropped, in the prompt until the next summary")
    LEFT_OUT = ("✗", Tone.GONE, "dropped, not in the prompt any more")
    SUMMED_UP = ("·", Tone.DIM, "not in the prompt any more, a summary took its place")


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One chunk: its entry in the list, where it stands, and its text for the preview, with the line it starts at."""

    entry: Entry
    path: str
    preview: str
    first_line: int
    place: str
    standing: Standing = Standing.IN_PROMPT


@dataclass(frozen=True, slots=True)
class CodeView:
    """The chunks: those pinned from elsewhere, then what the search brought, best first. A pin moves nothing."""

    title: str
    rows: tuple[CodeRow, ...]
    empty: str


def view_code(state: SessionState) -> CodeView:
    """Return what the code pane shows: the newest search of the current run."""
    run = state.run
    found, left = _newest(run)
    if run is None or (found is None and not run.pinned):
        return CodeView("Retrieved code", (), _nothing_yet(state))
    chunks = found.chunks if found is not None else ()
    places = {chunk.place for chunk in chunks}
    elsewhere = tuple(chunk for chunk in run.pinned if chunk.place not in places)
    rows = (
        *(_row("◆", chunk, Standing.PINNED) for chunk in elsewhere),
        *(_row(f"{n}", chunk, _standing(run, chunk.place, left)) for n, chunk in enumerate(chunks, 1)),
    )
    query = inert_line(found.query, 100) if found is not None else ""
    return CodeView(_title((*elsewhere, *chunks), rows), rows, f"the search for “{query}” found nothing")


def _title(chunks: tuple[Chunk, ...], rows: tuple[CodeRow, ...]) -> str:
    tokens = sum(chunk.tokens for chunk in chunks)
    pinned = sum(row.standing is Standing.PINNED for row in rows)
    out = sum(row.standing in (Standing.LEFT_OUT, Standing.SUMMED_UP) for row in rows)
    many = len(rows)
    told = (
        f"Retrieved code · {many} piece{'' if many == 1 else 's'}",
        f"{tokens:,} tokens" if tokens else "",
        f"{pinned} pinned" if pinned else "",
        f"{out} not in the prompt" if out else "",
    )
    return " · ".join(filter(None, told))


def _newest(run: TaskRun | None) -> tuple[CodeRetrieved | None, frozenset[str] | None]:
    """Return the newest search, and the places that a summary left in the prompt since (None: there was none)."""
    left: frozenset[str] | None = None
    for recorded in reversed(run.history if run is not None else ()):
        event = recorded.event
        if isinstance(event, CodeRetrieved):
            return event, left
        if isinstance(event, ContextCompacted) and left is None:
            left = frozenset(chunk.place for chunk in (*event.pinned, *event.code))
    return None, left


def _standing(run: TaskRun, place: str, left: frozenset[str] | None) -> Standing:
    if any(chunk.place == place for chunk in run.pinned):
        return Standing.PINNED
    there = left is None or place in left
    if place in run.dropped:
        return Standing.DROPPED if there else Standing.LEFT_OUT
    return Standing.IN_PROMPT if there else Standing.SUMMED_UP


def _nothing_yet(state: SessionState) -> str:
    if state.run is not None and state.run.phase in (Phase.BASELINE, Phase.RETRIEVING):
        return "the code that fits the task is searched for after the first checks"
    return "the code that is put before the model stands here once a task runs"


def _row(number: str, chunk: Chunk, standing: Standing) -> CodeRow:
    glyph, tone, said = standing.value
    symbol = f"  {inert_line(chunk.symbol, 120)}" if chunk.symbol else ""
    facts = (
        said,
        f"{chunk.tokens:,} tokens" if chunk.tokens else "",
        f"score {chunk.score:.2f}",
        f"for {', '.join(inert_line(word, 40) for word in chunk.why[:6])}" if chunk.why else "",
    )
    label_tone = Tone.ACCENT if standing is Standing.PINNED else Tone.NUMBER
    head = Block(f"{inert_line(chunk.place, 300)}{symbol}", tone, glyph or number, label_tone)
    about = Tone.ACCENT if standing is Standing.PINNED else Tone.DIM
    return CodeRow(
        Entry(f"{number}:{chunk.place}", (head, Block(" · ".join(filter(None, facts)), about))),
        path=chunk.path,
        preview=inert(chunk.text.rstrip("\n"), limit_chars=PREVIEW_CHARS),
        first_line=chunk.first_line,
        place=chunk.place,
        standing=standing,
    )
