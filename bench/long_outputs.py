"""`python -m bench.long_outputs DO FOLDER CHECKS MIB`: the memory that a session of long outputs takes.

Each is measured in a process of its own, which prints the growth of its memory in bytes and the seconds it took.
"""

import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path

import psutil

from agent_workbench.adapters.journal.reader import read_journal
from agent_workbench.adapters.journal.redaction import environment_redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.checks.failure_report import failed_tests
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events import Recorded, SessionStarted, TaskStarted, TestsFinished
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import CommitId, SessionId, TaskId
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.transcript import transcript_of
from bench.figures import Figure

TIME = "2026-01-01T00:00:00.000000Z"
TASK = TaskId("T-1")
MIB = 2**20


def measure(folder: Path, checks: int, mib: int) -> list[Figure]:
    """Record a session of so many checks that print `mib` MiB each, then open it as the next process would."""
    about = f"{checks} checks of {mib} MiB"
    recorded, _ = _child("record", folder, checks, mib)
    opened, seconds = _child("open", folder, checks, mib)
    return [
        Figure(f"memory of a session while it records {about}", recorded / MIB, "MiB"),
        Figure(f"memory of the same, opened again with its transcript, {about}", opened / MIB, "MiB"),
        Figure(f"open a session of {about}", seconds * 1000, "ms"),
    ]


def _child(do: str, folder: Path, checks: int, mib: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.long_outputs", do, str(folder), str(checks), str(mib)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=600)
    grown, seconds = done.stdout.split()
    return float(grown), float(seconds)


async def _record(folder: Path, checks: int, mib: int) -> SessionState:
    writer = await asyncio.to_thread(JournalWriter.open_new, folder, environment_redactor({}))
    facts = WorkspaceFacts("/worktree", "agent/T-1", CommitId("0" * 40), "0" * 40)
    state = SessionState()
    state = fold(state, await writer.append(0, TIME, SessionStarted(SessionId("s"), "/repo", CommitId("0" * 40), "0")))
    state = fold(state, await writer.append(1, TIME, TaskStarted(TASK, Task(TASK, "a task"), facts, ("pytest",))))
    for number in range(checks):
        state = fold(state, await _checked(writer, number + 2, mib))
    await writer.close()
    return state


async def _checked(writer: JournalWriter, seq: int, mib: int) -> Recorded:
    output = _output(seq, mib)
    result = CheckResult("pytest", 1, output, 1.0, failed_tests(output))
    return await writer.append(seq, TIME, TestsFinished(CheckPurpose.AFTER_DIFF, (result,)))


def _output(number: int, mib: int) -> str:
    passed = "".join(f"tests/test_{number}.py::test_{each} PASSED{' ' * 40}[ 12%]\n" for each in range(2_000))
    failed = "".join(
        f"{'_' * 20} test_bad_{each} {'_' * 20}\n\n>       assert {each} == 1\nE       assert {each} == 1\n\n"
        for each in range(40)
    )
    named = "".join(f"FAILED tests/test_{number}.py::test_bad_{each} - assert\n" for each in range(40))
    end = f"{failed}=== short test summary info ===\n{named}40 failed in 3.1s\n"
    return (passed * (mib * MIB // len(passed) + 1))[: mib * MIB - len(end)] + end


def main(do: str, folder: Path, checks: int, mib: int) -> None:
    """Do one of the two and print what it took."""
    before, started = psutil.Process().memory_info().rss, time.perf_counter()
    records = do == "record"
    state = asyncio.run(_record(folder, checks, mib)) if records else fold_all(read_journal(folder).events)
    transcript = transcript_of(state)
    seconds = time.perf_counter() - started
    gc.collect()
    print(psutil.Process().memory_info().rss - before, seconds)
    assert transcript.entries


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
