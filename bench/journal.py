"""How fast events become durable, and how fast a long journal is read, proved and folded."""

import asyncio
import tempfile
import time
from pathlib import Path

from agent_workbench.adapters.journal.blobs import JOURNAL
from agent_workbench.adapters.journal.line_format import encode_line
from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.journal.redaction import environment_redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.events import Event, ModelAnswered, SessionStarted, TaskStarted
from agent_workbench.core.events.codec import encode_event
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.model import AnswerFigures
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.workspace import WorkspaceFacts
from bench import long_outputs
from bench.figures import Figure, milliseconds, seconds_of

TIME = "2026-01-01T00:00:00.000000Z"
ANSWER_CHARACTERS = 1_000
TASK = TaskId("T-1")


def measure(
    appended: int = 500, read: int = 10_000, rounds: int = 3, checks: int = 30, check_mib: int = 8
) -> list[Figure]:
    """Append `appended` events with fsync, read back a journal of `read` events, and one of `checks` long outputs."""
    with tempfile.TemporaryDirectory(prefix="bench-journal-") as folder:
        written = asyncio.run(_append(Path(folder) / "appended", appended))
        long = Path(folder) / "long"
        _write(long, read)
        events = read_journal(long).events
        size = (long / JOURNAL).stat().st_size
        return [
            milliseconds("append an event of 1 kB with fsync", written),
            Figure("the slowest append", max(written) * 1000, "ms"),
            Figure(f"{read:,} events on disk", size / 1e6, "MB"),
            milliseconds(f"read and prove {read:,} events", seconds_of(lambda: read_journal(long), rounds)),
            milliseconds(f"verify {read:,} events", seconds_of(lambda: verify_journal(long), rounds)),
            milliseconds(f"fold {read:,} events of one task", seconds_of(lambda: fold_all(events), rounds)),
            *long_outputs.measure(Path(folder) / "outputs", checks, check_mib),
        ]


async def _append(folder: Path, count: int) -> list[float]:
    writer = await asyncio.to_thread(JournalWriter.open_new, folder, environment_redactor({}))
    found = []
    try:
        for seq in range(count):
            started = time.perf_counter()
            await writer.append(seq, TIME, _event(seq))
            found.append(time.perf_counter() - started)
    finally:
        await writer.close()
    return found


def _write(folder: Path, count: int) -> None:
    """Write a journal as the writer would, without waiting for the disk after each line."""
    folder.mkdir()
    lines, previous = [], ""
    for seq in range(count):
        kind, body = encode_event(_event(seq))
        line, previous = encode_line(seq, TIME, kind, body, previous)
        lines.append(line)
    (folder / JOURNAL).write_bytes(b"".join(lines))


def _event(seq: int) -> Event:
    if seq == 0:
        return SessionStarted(SessionId("20260101T000000-abcdef"), "/repo", CommitId("0" * 40), "0")
    if seq == 1:
        facts = WorkspaceFacts("/worktree", "agent/T-1", CommitId("0" * 40), "0" * 40)
        return TaskStarted(TASK, Task(TASK, "a task"), facts, ())
    return ModelAnswered(seq, "word " * (ANSWER_CHARACTERS // 5), AnswerFigures(1000, 900, 100, 0.1, 1.0), "bench")
