"""Replay of a recording: the bar with the position, the timeline with its marks, and the gates that pictures show."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.events import Recorded
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.history.replay_marks import MarkKind, Marks
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import decisions_of, newest_steps
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone

# A rarer, more important kind hides the others in its cell.
GLYPHS = {
    MarkKind.COMMIT: ("◆", Tone.GOOD),
    MarkKind.FAILURE: ("✗", Tone.BAD),
    MarkKind.WORD: ("“", Tone.ACCENT),
    MarkKind.TASK: ("▸", Tone.STRONG),
    MarkKind.DIFF: ("±", Tone.HUNK),
    MarkKind.DECISION: ("•", Tone.PLAIN),
}
BEFORE, AFTER, HERE = ("━", Tone.ACCENT), ("─", Tone.RULE), ("█", Tone.STRONG)
EVERYWHERE, CROWDED = 0.5, 1.5
"""Marks per cell from which a kind is everywhere, and the factor above that at which a cell is still marked."""
Cell = tuple[str, Tone]

UNDECIDED = "waits"


def view_timeline(marks: Marks, cells: int) -> tuple[Cell | None, ...]:
    """Return the marks of a recording in `cells` cells, None for an empty cell. Takes time for each mark.

    A kind that is nearly everywhere is drawn only in the cells that have more of it than most.
    """
    line: list[Cell | None] = [None] * cells
    for kind in reversed(GLYPHS):
        crowds = Counter(cell_of(seq, marks.count, cells) for seq in marks.of(kind)) if cells else Counter[int]()
        often = crowds.total() / max(1, cells)
        least = 1.0 if often <= EVERYWHERE else CROWDED * often
        for cell, crowd in crowds.items():
            if crowd >= least:
                line[cell] = GLYPHS[kind]
    return tuple(line)


def with_position(line: tuple[Cell | None, ...], seq: int, count: int) -> list[Cell]:
    """Return the line with the position of event `seq` of `count`. Takes time for each cell."""
    if not line:
        return []
    here = cell_of(seq, count, len(line))
    before = [cell or BEFORE for cell in line[:here]]
    return [*before, HERE, *(cell or AFTER for cell in line[here + 1 :])]


def cell_of(seq: int, count: int, cells: int) -> int:
    """Return the cell of an event: the first event is in the first cell, the last in the last."""
    return round(seq * (cells - 1) / (count - 1)) if count > 1 else 0


def seq_at(cell: int, count: int, cells: int) -> int:
    """Return the event at a cell."""
    return round(max(0, min(cell, cells - 1)) * (count - 1) / (cells - 1)) if cells > 1 else 0


class ReplayView(Struct, frozen=True):
    """Event `seq` of `count` (from 0): its line and time, and the state of the playback.

    `marks` are those of the whole recording.
    """

    seq: int
    count: int
    event: str
    time: str
    playing: bool
    speed: float
    marks: Marks


def view_replay(update: SessionUpdate) -> ReplayView | None:
    """Return the replay bar, None if this is no replay."""
    place = update.live.replay
    if place is None:
        return None
    return ReplayView(
        seq=place.seq,
        count=place.last_seq + 1,
        event=_event(update.state),
        time=update.state.time[11:19],
        playing=place.playing,
        speed=place.speed,
        marks=place.recording.marks,
    )


def _event(state: SessionState) -> str:
    """Return a line about the newest event: its log line, or its name in words."""
    if not state.latest_events:
        return "nothing yet"
    event = state.latest_events[-1].event
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(event).__name__).lower()
    return sanitize_line(log_line(event)) or name


class PicturedGate(Struct, frozen=True):
    """A gate after event `seq`: its proposal and the verdict that followed (`waits`: none did)."""

    seq: int
    proposal: Proposal
    verdict: str

    @property
    def name(self) -> str:
        """File name of the picture, in the order of the recording."""
        return f"{self.seq:05}-{self.proposal.kind}-{self.verdict}"


def pictured_gates(events: Sequence[Recorded]) -> Iterator[PicturedGate]:
    """Yield the gates: all diffs, commits and merges, and everything else that a person decided."""
    pictured: tuple[Proposal, ...] = ()
    for each in decisions_of(events):
        # What waited again as it was is pictured once.
        if (shown := each.proposal) is None or each.versions is pictured:
            continue
        pictured = each.versions
        if shown.changes_code or not each.event.by.startswith(POLICY):
            yield PicturedGate(each.seq - 1, shown, each.event.verdict)
    newest = next(newest_steps(events), None)
    if newest is not None and newest.decision is None:
        yield PicturedGate(events[-1].seq, newest.proposal, UNDECIDED)
