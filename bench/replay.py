"""How fast a long recording opens and is moved in: sessions, views and widgets, and what it keeps in memory."""

import asyncio
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

from agent_workbench.adapters.journal.blobs import JOURNAL
from agent_workbench.adapters.journal.line_format import encode_line
from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.api.sessions.session_opening import replayed_session
from agent_workbench.core.events import Recorded
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.fold import fold_all
from agent_workbench.core.history.replay_marks import marks_of
from agent_workbench.core.intents import GoToEvent
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.views.code import shown_code_snapshots, view_code
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import view_gate
from agent_workbench.views.plan import view_plan, view_scratchpad
from agent_workbench.views.receipt import view_receipt
from agent_workbench.views.record_search import search_events
from agent_workbench.views.status import view_status
from agent_workbench.views.timeline import view_replay, view_timeline
from agent_workbench.views.transcript import transcript_of, transcript_snapshots, view_steps
from bench.figures import Figure, milliseconds, ratio, seconds_of
from bench.given_host import GivenHost
from bench.long_session import long_session

OPENED = "target 1,000"
SOUGHT = "target 50"
SIZE = (160, 45)
View = Callable[[SessionUpdate], object]


def measure(events: int = 10_000, seeks: int = 40, rounds: int = 3) -> list[Figure]:
    """Open a session of so many events in one task, and go to so many of them, back and forth."""
    story = long_session(events)
    with tempfile.TemporaryDirectory(prefix="bench-replay-") as name:
        folder = Path(name)
        write_journal(folder, story)
        opened = seconds_of(lambda: asyncio.run(replayed_session(read_journal(folder).events)), rounds)
    places = random.Random(7).sample(range(events), min(seeks, events))
    return [
        milliseconds(f"open {events:,} events: read, prove, fold", opened, OPENED),
        *asyncio.run(_screen(story, places)),
        *_moves(story, places),
        milliseconds(
            "search for words that are everywhere", seconds_of(lambda: search_events(story, "quantity"), rounds)
        ),
        Figure("memory kept for going back", _kept(story), "MB"),
    ]


def write_journal(folder: Path, story: Sequence[Recorded]) -> None:
    """Write the events as the journal of a session in `folder`, in a chain of their own."""
    lines, previous = [], ""
    for recorded in story:
        kind, body = encode_event(recorded.event)
        line, previous = encode_line(recorded.seq, recorded.time, kind, body, previous)
        lines.append(line)
    (folder / JOURNAL).write_bytes(b"".join(lines))


def _moves(story: Sequence[Recorded], places: Sequence[int]) -> list[Figure]:
    """Return what a move costs without the screen: the state, and each view."""
    trail, code = transcript_snapshots(), shown_code_snapshots()
    end = SessionUpdate(fold_all(story))
    view_steps(end, trail)
    view_code(end.state, None, code)
    views: dict[str, View] = {
        "steps": lambda update: view_steps(update, trail),
        "plan": lambda update: view_plan(update.state),
        "diff": view_diff,
        "code": lambda update: view_code(update.state, None, code),
        "scratchpad": lambda update: view_scratchpad(update.state),
        "status": view_status,
        "gate": view_gate,
        "replay bar": view_replay,
        "receipt, when it is open": lambda update: view_receipt(update.state),
    }
    moved, folded = list[float](), list[float]()
    took: dict[str, list[float]] = {name: [] for name in views}
    with asyncio.Runner() as loop:
        session = loop.run(replayed_session(story))
        for place in places:
            moved.append(_seconds(partial(loop.run, _go(session, place))))
            folded.append(_seconds(partial(fold_all, story[: place + 1])))
            update = loop.run(_now(session))
            for name, view in views.items():
                took[name].append(_seconds(partial(view, update)))
    marks = marks_of(story)
    return [
        milliseconds("a seek's state", moved),
        ratio("the same, of folding from the beginning", moved, folded),
        *(milliseconds(f"view of {name}", seconds) for name, seconds in took.items()),
        milliseconds("timeline of 160 cells, once for a width", seconds_of(lambda: view_timeline(marks, 160), 3)),
    ]


async def _screen(story: Sequence[Recorded], places: Sequence[int]) -> list[Figure]:
    """Return what a seek costs with all that the screen makes of it, from the first picture on."""
    from agent_workbench.api.screen_services import system_clock
    from agent_workbench.tui.app import WorkbenchApp

    session = await replayed_session(story)
    app = WorkbenchApp(GivenHost(session), SessionRequest(), clock=system_clock())
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        first = await _shown(app.workbench.updates.show, session, len(story))
        while app.workbench.updates.preparing:
            await pilot.pause(0.01)
        took = [await _shown(app.workbench.updates.show, session, place) for place in places]
        return [
            milliseconds("a seek with all panes, to be drawn", took, SOUGHT),
            Figure("the slowest of them", max(took) * 1000, "ms", SOUGHT),
            Figure("to the end, right after it was opened", first * 1000, "ms"),
        ]


async def _shown(show: Callable[[SessionUpdate], None], session: SessionHandle, place: int) -> float:
    """Return how long it takes to go to an event and give all panes what they show; drawing the lines is not in it."""
    started = time.perf_counter()
    await _go(session, place)
    show(await _now(session))
    return time.perf_counter() - started


async def _go(session: SessionHandle, place: int) -> None:
    await session.submit(GoToEvent(place))


async def _now(session: SessionHandle) -> SessionUpdate:
    async with aclosing(session.live()) as updates:
        return await anext(updates)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _kept(story: Sequence[Recorded]) -> float:
    tracemalloc.start()
    try:
        trail = transcript_snapshots()
        update = asyncio.run(_at_the_end(story))
        transcript_of(update.state, trail)
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


async def _at_the_end(story: Sequence[Recorded]) -> SessionUpdate:
    return await _now(await replayed_session(story, at=-1))
