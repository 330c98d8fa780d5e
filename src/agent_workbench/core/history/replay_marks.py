"""Replay of a session: its pace, its marks, and its prompts built again and compared with their records."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from agent_workbench.core.checks.results import CheckPurpose, all_passed
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Event,
    ModelInterrupted,
    PromptBuilt,
    ProposalReplaced,
    Recorded,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskStarted,
    TestsFinished,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import UNASKED
from agent_workbench.core.settings import Permission

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)
MIN_SECONDS = 0.1
MAX_SECONDS = 2.0


class MarkKind(StrEnum):
    """Kinds of marked events."""

    DIFF = "diff"
    FAILURE = "failure"
    DECISION = "decision"
    WORD = "message of yours"
    PROMPT = "prompt"
    TASK = "task"
    COMMIT = "commit"


class Marks(Struct, frozen=True):
    """Numbers of the marked events of each kind, ascending. `count` is the number of all events."""

    count: int = 0
    places: Mapping[MarkKind, tuple[int, ...]] = field(default_factory=dict)

    def of(self, kind: MarkKind) -> tuple[int, ...]:
        """Return the numbers of the events of a kind."""
        return self.places.get(kind, ())

    def nearest(self, kind: MarkKind, seq: int, *, forward: bool) -> int | None:
        """Return the next event of a kind after `seq`, or the previous one; None if there is none."""
        return nearest_mark(self.of(kind), seq, forward=forward)


def nearest_mark(places: tuple[int, ...], seq: int, *, forward: bool) -> int | None:
    """Return the first of the ascending `places` after `seq`, or the last before it; None if there is none."""
    at = bisect_right(places, seq) if forward else bisect_left(places, seq) - 1
    return places[at] if 0 <= at < len(places) else None


def marks_of(events: Iterable[Recorded]) -> Marks:
    """Return the marks of a session."""
    found: dict[MarkKind, list[int]] = {kind: [] for kind in MarkKind}
    count = 0
    for recorded in events:
        count += 1
        for kind in _kinds(recorded.event):
            found[kind].append(recorded.seq)
    return Marks(count, {kind: tuple(places) for kind, places in found.items()})


def _kinds(event: Event) -> Iterator[MarkKind]:
    if reports_failure(event):
        yield MarkKind.FAILURE
    match event:
        case ActionProposed() | ProposalReplaced():
            if event.proposal.kind is Permission.DIFF:
                yield MarkKind.DIFF
        case ActionDecided():
            if event.by != UNASKED:
                yield MarkKind.DECISION
        case AbortAsked():
            yield MarkKind.DECISION
        case UserSaid():
            yield MarkKind.WORD
        case PromptBuilt():
            yield MarkKind.PROMPT
        case TaskStarted() | TaskFinished():
            yield MarkKind.TASK
        case TaskCommitted() | TaskMerged():
            yield MarkKind.COMMIT
        case _:
            return


def reports_failure(event: Event) -> bool:
    """Return True if an event reports a failure. Failures before any change do not count."""
    match event:
        case TestsFinished():
            return event.purpose is not CheckPurpose.BASELINE and not all_passed(event.results)
        case ActionFinished():
            return event.result not in {ActionResult.OK, ActionResult.STOPPED}
        case TaskFinished():
            return event.status is TaskStatus.FAILED
        case ActionRejected() | ModelInterrupted() | TroubleMet() | TaskRolledBack():
            return True
        case _:
            return False


def faster(speed: float) -> float:
    """Return the next higher speed, or the highest."""
    return next((each for each in SPEEDS if each > speed), SPEEDS[-1])


def slower(speed: float) -> float:
    """Return the next lower speed, or the lowest."""
    return next((each for each in reversed(SPEEDS) if each < speed), SPEEDS[0])


def wait_seconds(before: str, after: str, speed: float) -> float:
    """Return the seconds between two events of a replay; `before` and `after` are ISO 8601 times."""
    return min(max(_apart(before, after), MIN_SECONDS), MAX_SECONDS) / speed


def _apart(before: str, after: str) -> float:
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):  # a journal may hold any text as its time, with or without a zone
        return 0.0


class PromptDifference(Struct, frozen=True):
    """First difference between a rebuilt prompt and its record: the subject, the part, and a short diff."""

    what: str
    part: str = ""
    diff: str = ""


class ReproducedPrompt(Struct, frozen=True):
    """Rebuilt prompt `number` of a session, counted from 1; `seq` is the event of its record.

    `compared` is False where the record holds nothing to compare with. `remark` is a further note for the reader.
    """

    number: int
    seq: int
    built: PromptBuilt
    difference: PromptDifference | None = None
    compared: bool = True
    remark: str = ""
