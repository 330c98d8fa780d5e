"""Sessions whose journals are written in one go, for tests of the audit."""

from datetime import datetime, timedelta
from pathlib import Path

from agent_workbench.adapters.journal.blobs import Blobs
from agent_workbench.adapters.journal.line_format import encode_line
from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    Event,
    ModelAnswered,
    SessionStarted,
    TaskCommitted,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.proposal_kinds import CommitProposal
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.task_estimates import Intent

BASE = CommitId("c" * 40)
NOW = "2026-11-22T12:00:00.000000Z"


def session_name(number: int) -> SessionId:
    """Return the name of a session."""
    letters = "".join("abcdefghijklmnopqrstuvwxyz234567"[number >> shift & 31] for shift in (15, 10, 5, 0))
    return SessionId(f"20261101T000000-aa{letters}")


def task_events(
    task: str,
    status: TaskStatus = TaskStatus.DONE,
    *,
    service: str = "",
    intent: Intent | None = None,
    dollars: float = 0.0,
    reason: str = "",
) -> tuple[Event, ...]:
    """Return the events of a task: an answer, a commit that the user approved, and the end."""
    place = WorkspaceFacts("/w", f"agent/{task}", BASE, "t" * 40)
    definition = Task(TaskId(task), "Do it", service=service, intent=intent)
    proposal = CommitProposal(ProposalId("P-1"), "commit", "Do it well\n\nBecause.", 1)
    end: tuple[Event, ...] = (TaskFinished(TaskId(task), status, reason),)
    if status is TaskStatus.DONE:
        end = (TaskCommitted(TaskId(task), CommitId("d" * 40), f"agent/{task}", "Do it well"), *end)
    return (
        TaskStarted(TaskId(task), definition, place, ("true",)),
        ModelAnswered(1, "an answer", AnswerFigures(100, 0, 10, dollars=dollars), "cloud (http://x)", "m"),
        ActionProposed(proposal),
        ActionDecided(proposal.id, Verdict.APPROVE, "user", via="ada in a shell at 12:00"),
        *end,
    )


def write_session(
    folder: Path, name: SessionId, events: tuple[Event, ...], *, ended: str = "2026-11-22T11:00:00.000000Z"
) -> bytes:
    """Write a session whose last event is at `ended`, the others a second apart before it; return its journal."""
    directory = folder / name
    directory.mkdir(parents=True, exist_ok=True)
    whole = events if isinstance(events[0], SessionStarted) else (SessionStarted(name, "/r", BASE, "0.1.0"), *events)
    last = datetime.fromisoformat(ended).replace(tzinfo=None)
    prev, lines, blobs = "", [], Blobs(directory)
    for seq, event in enumerate(whole):
        kind, body = encode_event(event)
        time = (last - timedelta(seconds=len(whole) - 1 - seq)).isoformat(timespec="microseconds") + "Z"
        line, prev = encode_line(seq, time, kind, blobs.replace_long_texts(body), prev)
        lines.append(line)
    (directory / "journal.jsonl").write_bytes(b"".join(lines))
    return b"".join(lines)
