"""Journals for tests: a short story of a session, and quick ways to put it on the disk."""

from pathlib import Path

from agent_workbench.adapters.journal.blobs import Blobs
from agent_workbench.adapters.journal.line_format import encode_line
from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.core import events as e
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.ids import CommitId, ProposalId, SessionId, TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.ports.stores import Journal
from agent_workbench.core.repo.workspace import WorkspaceFacts

SESSION = SessionId("20260102T030405-abc234")
TASK = TaskId("T-1")
NO_SECRETS = Redactor({})
LONG = "a long output, ä€😀\n" * 400

STORY: tuple[e.Event, ...] = (
    e.SessionStarted(SESSION, "/home/me/shop", CommitId("c" * 40), "0.1.0"),
    e.PlanRead("memory/plans/PLAN.yaml", Plan((Task(TASK, "Say “grüß Gott”"),), goal="politeness")),
    e.TaskStarted(
        TASK, Task(TASK, "Say “grüß Gott”"), WorkspaceFacts("/w", "agent/T-1", CommitId("c" * 40), "t" * 40), ("true",)
    ),
    e.ActionStarted(ProposalId("p1")),
    e.ActionFinished(ProposalId("p1"), e.ActionResult.OK, "done", 1.25, output=LONG),
    e.TaskFinished(TASK, TaskStatus.DONE, ""),
)

SHORT_STORY: tuple[e.Event, ...] = (STORY[0], *STORY[3:5], e.RetryAsked())
"""For tests that try every byte."""


def started(session: SessionId = SESSION) -> e.SessionStarted:
    """Return a first event."""
    return e.SessionStarted(session, "/home/me/shop", CommitId("c" * 40), "0.1.0")


def time_of(seq: int) -> str:
    """Return a time for an event."""
    return f"2026-01-02T03:04:05.{seq:06d}Z"


def write_quickly(directory: Path, events: tuple[e.Event, ...] = STORY) -> list[bytes]:
    """Write a journal without its writer's care and return its lines."""
    directory.mkdir(parents=True, exist_ok=True)
    blobs, prev, lines = Blobs(directory), "", []
    for seq, event in enumerate(events):
        kind, body = encode_event(event)
        line, prev = encode_line(seq, time_of(seq), kind, blobs.replace_long_texts(body), prev)
        lines.append(line)
    (directory / "journal.jsonl").write_bytes(b"".join(lines))
    return lines


async def append_all(writer: Journal, events: tuple[e.Event, ...] = STORY, first: int = 0) -> list[e.Recorded]:
    """Append the events with times of their own."""
    return [await writer.append(seq, time_of(seq), event) for seq, event in enumerate(events, first)]


def events_in(directory: Path) -> tuple[e.Event, ...]:
    """Return what a journal holds, without sequence and time."""
    return tuple(each.event for each in read_journal(directory).events)
