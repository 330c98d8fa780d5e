"""Log of a session's tasks for those that judge a session: decisions, failures, reflexions and ends."""

from collections.abc import Iterable, Iterator

from agent_workbench.core.checks.results import all_passed
from agent_workbench.core.consult.session_log import MESSAGE_CHARS, LogEntry
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionRejected,
    Event,
    ProposalReplaced,
    Recorded,
    ReflexionNoted,
    TaskFinished,
    TaskStarted,
    TestsFinished,
    UserSaid,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import UNASKED, Verdict


def task_entries(events: Iterable[Recorded], session: SessionId, root: str) -> Iterator[LogEntry]:
    """Yield an entry for each event that a lesson may come from; consultations have entries of their own."""
    for recorded in events:
        told = _told(recorded.event)
        if told is not None:
            phase, status = told
            message = log_line(recorded.event)[:MESSAGE_CHARS]
            yield LogEntry(session, recorded.time, "task", phase, root, "", status, "", 0, message)


def _told(event: Event) -> tuple[str, str] | None:
    """Return phase and status of an event's entry, None for one without an entry."""
    match event:
        case TaskStarted():
            return "start", "ok"
        case ActionDecided(verdict=verdict, by=by) if by != UNASKED and verdict is not Verdict.APPROVE:
            return "gate", verdict.value
        case ProposalReplaced() if event.proposal.hunks:
            return "gate", "partly"
        case TestsFinished() if not all_passed(event.results):
            return "checks", "failed"
        case ActionRejected():
            return "step", "invalid"
        case ReflexionNoted():
            return "reflexion", "ok"
        case UserSaid():
            return "user", "ok"
        case AbortAsked():
            return "end", "aborted"
        case TaskFinished():
            return "end", "ok" if event.status is TaskStatus.DONE else "failed"
        case _:
            return None
