"""Sessions: tabs of the running ones and what they notify of, and recorded ones as a tree of forks."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from agent_workbench.core.history.summaries import SessionSummary
from agent_workbench.core.ids import SessionId
from agent_workbench.core.live import Live, SessionUpdate
from agent_workbench.core.plan import TaskStatus, WorkState
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.core.state.proposal_hooks import awaited_hook
from agent_workbench.core.state.session_state import Phase, SessionState
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Tone

_DEEPEST = 8
"""Maximum indentation of the tree."""
GLYPHS = {
    WorkState.DAMAGED: ("✗", Tone.BAD),
    WorkState.OPEN: ("●", Tone.ACCENT),
    WorkState.WAITS: ("◆", Tone.WARN),
    WorkState.PARKED: ("◆", Tone.WARN),
    WorkState.STOPPED: ("○", Tone.WARN),
    WorkState.DONE: ("•", Tone.GOOD),
    WorkState.FAILED: ("✗", Tone.BAD),
}

MAX_FILES = 8

MAX_NAME_CHARS = 16
NOTIFICATION_TITLE = "Agent Workbench"
GAP = 1

REPLAYED = "this is a recording; nothing in it can be changed"
FOLLOWED = "this session is only followed: approve, reject or skip what waits, or open it from the inbox to change more"


class SessionRow(Struct, frozen=True):
    """A session in the tree: `branch` is the tree line before its name, `glyph` and `state` its status.

    `origin` is the event after which it was forked. `note` is its holder, or its problem. `resumable`: it can be
    resumed here and now; else it can be replayed, and followed while somebody has it open.
    """

    summary: SessionSummary
    branch: str
    glyph: str
    state: WorkState
    tone: Tone
    when: str
    task: str
    origin: str
    note: str
    resumable: bool


def view_sessions(summaries: Sequence[SessionSummary]) -> tuple[SessionRow, ...]:
    """Return the rows of the tree, newest first among siblings."""
    return tuple(_row(each, depth) for each, depth in _tree(summaries))


def _tree(summaries: Sequence[SessionSummary]) -> Iterator[tuple[SessionSummary, int]]:
    known = {each.id for each in summaries}
    below: dict[SessionId, list[SessionSummary]] = {}
    roots = []
    for each in summaries:
        if each.parent in known and each.parent is not None:
            below.setdefault(each.parent, []).append(each)
        else:
            roots.append(each)
    seen: set[SessionId] = set()
    # Journals that name each other as parents have no root; they are listed too.
    for root in (*roots, *summaries):
        waiting = [(root, 0)]
        while waiting:
            each, depth = waiting.pop()
            if each.id in seen:
                continue
            seen.add(each.id)
            yield each, depth
            waiting += [(child, depth + 1) for child in reversed(below.get(each.id, []))]


def _row(summary: SessionSummary, depth: int) -> SessionRow:
    glyph, tone = GLYPHS.get(summary.state, ("·", Tone.DIM))
    free = summary.ours and summary.events > 0 and not summary.holder and not summary.problem
    return SessionRow(
        summary=summary,
        branch=f"{'  ' * (min(depth, _DEEPEST) - 1)}└ " if depth else "",
        glyph=glyph,
        state=summary.state,
        tone=tone,
        when=summary.last[:16].replace("T", " "),
        task=sanitize_line(summary.subject, 120),
        origin=_origin(summary, below_parent=depth > 0),
        note=sanitize_line(_about(summary), 300),
        resumable=free and summary.status in {TaskStatus.IN_PROGRESS, None},
    )


def _origin(summary: SessionSummary, *, below_parent: bool) -> str:
    if summary.parent is None:
        return ""
    return f"from event {summary.parent_seq}{'' if below_parent else f' of {sanitize_line(summary.parent, 40)}'}"


def _about(summary: SessionSummary) -> str:
    if summary.problem:
        return summary.problem
    holder = f"open: {summary.holder}" if summary.holder else ""
    brought = "" if summary.ours else "not started here: it can only be replayed"
    return ", ".join(filter(None, (holder, brought)))


def fork_lines(state: SessionState, why: str, files: Sequence[FileStat]) -> tuple[str, ...]:
    """Return a few lines: where a fork begins (`why`: earlier than requested), and with which files."""
    begins = f"It continues after event {state.seq}, {state.time[:16].replace('T', ' ')}."
    said = (begins, f"{why[0].upper()}{why[1:]}.") if why else (begins,)
    run = state.run
    if run is None:
        return (*said, "", "No task was started by then.")
    notes, waits = state.scratchpad(run.task), run.gate.waiting
    waiting = (f"Waiting there: {sanitize_line(waits.described, 200)}",) if waits is not None else ()
    return (
        *said,
        "",
        sanitize_line(f"{run.task}  {run.definition.title}"),
        f"{counted_text(run.step, 'step')}, {counted_text(run.tokens, 'token')}",
        *waiting,
        "",
        *(("Files as they were, changed so far:",) if files else ("Files as they were: none is changed so far.",)),
        *(f"  {file_line(each)}" for each in files[:MAX_FILES]),
        *((f"  and {len(files) - MAX_FILES} more",) if len(files) > MAX_FILES else ()),
        *((f"Notes as they were: {counted_text(len(notes.splitlines()), 'line')}.",) if notes else ()),
        "",
        "It has a branch, a workspace and notes of its own. The session it comes from stays as it is.",
    )


def file_line(stat: FileStat) -> str:
    """Return a file with its added and removed lines."""
    return f"{sanitize_line(stat.path, 200)}  {stat.text}"


class TabState(StrEnum):
    """State of a session as its tab shows it."""

    OPENING = "opening"
    WAITS = "waits"
    TROUBLE = "trouble"
    PAUSED = "paused"
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    IDLE = "idle"
    RECORDING = "recording"


BADGES = {
    TabState.OPENING: ("…", Tone.DIM),
    TabState.WAITS: ("!", Tone.WARN),
    TabState.TROUBLE: ("✗", Tone.BAD),
    TabState.PAUSED: ("‖", Tone.WARN),
    TabState.RUNNING: ("▸", Tone.PLAIN),
    TabState.STOPPED: ("·", Tone.WARN),
    TabState.DONE: ("✓", Tone.GOOD),
    TabState.FAILED: ("✗", Tone.BAD),
    TabState.IDLE: ("·", Tone.DIM),
    TabState.RECORDING: ("»", Tone.DIM),
}
UNCHECKED = ("•", Tone.PLAIN)
"""Badge of a task that is done with nothing shown to pass."""
NEEDS_USER = frozenset({TabState.WAITS, TabState.TROUBLE})
"""States in which the session waits for the user."""


class TabView(Struct, frozen=True):
    """A session in a few words: its name, its state, and what waits (`waiting_for`).

    `passed`: the checks of its task were shown to pass.
    """

    name: str = "new"
    state: TabState = TabState.OPENING
    waiting_for: str = ""
    passed: bool = False

    @property
    def needs_user(self) -> bool:
        """True if the session needs the user to continue."""
        return self.state in NEEDS_USER

    @property
    def badge(self) -> tuple[str, Tone]:
        """Glyph of the state, and its tone."""
        return UNCHECKED if self.state is TabState.DONE and not self.passed else BADGES[self.state]

    @property
    def words(self) -> str:
        """The state in a word or two."""
        return f"{self.waiting_for} {self.state}".strip()


class TabNotification(Struct, frozen=True):
    """Reason to notify the user: `key` identifies it, `text` is one sanitized line."""

    key: str
    text: str


class PlacedTab(Struct, frozen=True):
    """Tab `number` (from 0) with its text from cell `start` on; the badge follows `badge_at` characters."""

    number: int
    start: int
    text: str
    badge_at: int

    @property
    def end(self) -> int:
        """The cell after it."""
        return self.start + len(self.text)


def view_tab(update: SessionUpdate) -> TabView:
    """Return the state of a session."""
    state, live, run = update.state, update.live, update.state.run
    if live.replay is not None:
        return TabView(_name(state), TabState.RECORDING)
    if live.question is not None:
        return TabView(_name(state), TabState.WAITS, "question")
    if state.trouble is not None:
        return TabView(_name(state), TabState.TROUBLE)
    # A followed session is at work only while a process has it open.
    at_work = TabState.STOPPED if live.followed is not None and not live.followed.holder else TabState.RUNNING
    decided = live.followed is not None and live.followed.decided is not None
    if decided or (state.waiting is not None and awaited_hook(state, state.waiting)):
        return TabView(_name(state), at_work)
    if state.waiting is not None:
        return TabView(_name(state), TabState.WAITS, str(state.waiting.kind))
    if run is not None and run.held and not live.activity:
        waits = run.awaits_send and state.reviews_context
        return TabView(_name(state), TabState.WAITS, "context") if waits else TabView(_name(state), TabState.PAUSED)
    if state.at_work or live.activity:
        return TabView(_name(state), at_work if state.session else TabState.OPENING)
    return TabView(_name(state), _rest(state), passed=run is not None and run.shown_to_pass)


def view_notification(update: SessionUpdate) -> TabNotification | None:
    """Return the session's reason to notify the user: a question, trouble, a proposal, the end of a task."""
    state, run, tab = update.state, update.state.run, view_tab(update)
    if tab.state is TabState.WAITS and update.live.question is not None:
        return TabNotification(f"question {update.live.question.key}", sanitize_line(update.live.question.title, 120))
    if tab.state is TabState.TROUBLE and state.trouble is not None:
        return TabNotification(
            f"trouble {state.trouble.what}", sanitize_line(f"{tab.name}: trouble: {state.trouble.what}", 120)
        )
    if tab.state is TabState.WAITS and state.waiting is not None:
        return TabNotification(f"proposal {state.waiting.id}", f"{tab.name}: {tab.words}")
    if tab.state is TabState.WAITS and run is not None:
        return TabNotification(f"context {len(state.past)} {run.task}", f"{tab.name}: {tab.words}")
    if run is not None and tab.state in {TabState.DONE, TabState.FAILED}:
        return TabNotification(f"end {len(state.past)} {run.task}", f"{tab.name} is {tab.state}")
    return None


def should_notify(call: TabNotification | None, told: str, *, focused: bool | None, in_front: bool) -> bool:
    """Return True if the user must be notified.

    `told` is the key of the last notification. `focused` says whether the terminal has the focus; None if it does not
    report that: then the user is assumed to see the session that is `in_front`.
    """
    if call is None or call.key == told or focused:
        return False
    return focused is False or not in_front


def lay_out_tabs(tabs: Sequence[TabView], front: int, width: int) -> tuple[PlacedTab, ...]:
    """Return the tabs laid out in `width` cells: with words, else with badges, else only those around `front`."""
    for words in (True, False):
        placed = _placed(tabs, range(len(tabs)), words=words)
        if not placed or placed[-1].end < width:
            return placed
    shown = [front]
    while True:
        wider = [number for number in (shown[0] - 1, shown[-1] + 1) if 0 <= number < len(tabs)]
        fitting = [
            sorted((*shown, each))
            for each in wider
            if _placed(tabs, sorted((*shown, each)), words=False)[-1].end < width
        ]
        if not fitting:
            return _placed(tabs, shown, words=False)
        shown = fitting[-1]


def _placed(tabs: Sequence[TabView], numbers: Sequence[int], *, words: bool) -> tuple[PlacedTab, ...]:
    placed, at = [], 1
    for number in numbers:
        tab = tabs[number]
        head = f" {tab.name} "
        text = f"{head}{tab.badge[0]}{f' {tab.words}' if words else ''} "
        placed.append(PlacedTab(number, at, text, len(head)))
        at += len(text) + GAP
    return tuple(placed)


def _name(state: SessionState) -> str:
    if state.open_planning is not None:
        return "plan"
    if state.in_chat:
        return "chat"
    return sanitize_line(state.run.task, MAX_NAME_CHARS) if state.run is not None else "new"


def _rest(state: SessionState) -> TabState:
    run = state.run
    if run is None or run.phase is not Phase.OVER or run.status is None:
        return TabState.IDLE
    return {TaskStatus.DONE: TabState.DONE, TaskStatus.FAILED: TabState.FAILED}.get(run.status, TabState.IDLE)


def read_only_reason(live: Live) -> str:
    """Return why nothing in the session can be changed here, empty if it can."""
    if live.replay is not None:
        return REPLAYED
    return FOLLOWED if live.followed is not None else ""
