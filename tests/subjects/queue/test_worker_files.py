"""States of living workers, and results that wait to be reported, as files."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxItem
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.task_result import TaskResult
from agent_workbench.core.workers import WorkerLine, WorkerState
from agent_workbench.subjects.queue.files_adapter import QueueFiles
from agent_workbench.subjects.queue.folder_adapter import FolderQueue
from agent_workbench.subjects.queue.records_adapter import QueueRecords
from agent_workbench.subjects.queue.wiring import definition_facts
from agent_workbench.subjects.queue.worker_files_adapter import ReportOutbox, WorkerFiles
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.report_calls import TaskReports
from tests.contracts.clocks import SetClock
from tests.fakes.stores import MemoryTaskQueue

ELSEWHERE = "20260102T030405-abc234"
RESULT = TaskResult("a", TaskStatus.DONE, "committed", 0, source="gitea:owner/repo#7")


def test_a_second_living_worker_gets_a_number_and_a_name_is_free_after_its_end(tmp_path: Path) -> None:
    first, second, third = (WorkerFiles(tmp_path / "workers") for _ in range(3))
    first.begin("one")
    assert (first.take_name("box"), second.take_name("box")) == ("box", "box-2")
    assert [each.name for each in third.living()] == []
    first.end()
    assert third.take_name("box") == "box"
    second.end()
    third.end()


def test_a_worker_is_alive_while_it_holds_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    first, second = WorkerFiles(folder), WorkerFiles(folder)
    assert first.living() == ()
    for files, name in ((first, "one"), (second, "two")):
        files.begin(name)
        files.write(WorkerState(name, f"since {name}"))
    assert [each.name for each in WorkerFiles(folder).living()] == ["one", "two"]
    first.end()
    (folder / "dead.lock").write_text("pid 7")
    (folder / "dead.json").write_text("{")
    (folder / "starting.lock").write_text("")
    assert [each.name for each in second.living()] == ["two"]
    assert sorted(each.name for each in folder.iterdir()) == ["starting.lock", "two.json", "two.lock"]


class SilentForge:
    """`Reporter` that answers after some refusals."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.told: list[str] = []

    async def started(self, task: Task, session: SessionId) -> str:
        return ""

    async def parked(self, task: Task, session: SessionId, item: InboxItem) -> str:
        return ""

    async def ended(self, result: TaskResult) -> str:
        self.refusals -= 1
        if self.refusals >= 0:
            return "the forge does not answer"
        self.told.append(result.task)
        return ""


async def ended_queue(result: TaskResult, *, session: str = "", name: str = "") -> MemoryTaskQueue:
    """Return a queue in which a task ended with this status in a session; `name` is its id there if it is another."""
    queue = MemoryTaskQueue(SetClock())
    await queue.put(QueuedTask(name or result.task, ""))
    claim = await queue.claim("box", 30)
    assert claim is not None
    await queue.renew(claim, 30, SessionId(session))
    await queue.finish(claim, QueueState(result.status), result.reason)
    return queue


async def test_a_result_waits_until_it_is_reported(tmp_path: Path) -> None:
    forge, lines, outbox = SilentForge(2), list[WorkerLine](), ReportOutbox(tmp_path / "reports")
    reports = TaskReports(forge, outbox, await ended_queue(RESULT), WorkerLog(lines.append, SetClock(), str))
    await reports.expect(RESULT)
    assert await asyncio.to_thread(outbox.pending) == ((RESULT, False),), (
        "a worker that is killed now leaves it to the next"
    )
    await reports.ended(RESULT)
    await reports.send_again()
    assert (forge.told, [each.text for each in lines]) == ([], ["the forge does not answer"] * 2)
    await asyncio.to_thread((tmp_path / "reports" / "broken.json").write_text, "[")
    await reports.send_again()
    assert forge.told == ["a"]
    assert await asyncio.to_thread(outbox.pending) == ()


@pytest.mark.parametrize(
    ("recorded", "session", "dropped"),
    [
        (RESULT, "20260102T030405-abc234", True),
        (replace(RESULT, status=TaskStatus.FAILED), "", True),
        (None, "", False),
    ],
    ids=["by another worker", "with another status", "by nobody yet"],
)
async def test_a_result_that_the_queue_did_not_record_is_not_reported(
    tmp_path: Path, recorded: TaskResult | None, session: str, dropped: bool
) -> None:
    queue = MemoryTaskQueue(SetClock()) if recorded is None else await ended_queue(recorded, session=session)
    if recorded is None:
        await queue.put(QueuedTask(RESULT.task, ""))
    forge, lines, outbox = SilentForge(0), list[WorkerLine](), ReportOutbox(tmp_path / "reports")
    reports = TaskReports(forge, outbox, queue, WorkerLog(lines.append, SetClock(), str))
    await reports.expect(RESULT)
    await reports.send_again()
    assert forge.told == []
    assert await asyncio.to_thread(outbox.pending) == (() if dropped else ((RESULT, False),))
    assert len(lines) == dropped


FILES = [("gitea-42.yaml", "id: T-42\n"), ("042 fix.yml", ""), ("a.yaml", "")]


@pytest.mark.parametrize(("name", "text"), FILES)
@pytest.mark.parametrize("killed", [True, False], ids=["killed behind the record", "the forge was silent"])
async def test_a_result_is_sent_again_whatever_the_tasks_file_is_called(
    tmp_path: Path, name: str, text: str, killed: bool
) -> None:
    queue = folder_queue(tmp_path)
    file = tmp_path / "tasks" / name
    file.parent.mkdir()
    file.write_text(f"{text}goal: x y\n")
    forge, outbox = SilentForge(0 if killed else 1), ReportOutbox(tmp_path / "reports")
    reports = TaskReports(forge, outbox, queue, WorkerLog(list[WorkerLine]().append, SetClock(), str))
    claim = await queue.claim("box", 30)
    assert claim is not None
    result = replace(RESULT, task=claim.task.id, session=SessionId(ELSEWHERE))
    await queue.renew(claim, 30, result.session)
    await reports.expect(result)
    await queue.finish(claim, QueueState.DONE, "", result)
    if not killed:
        await reports.ended(result)
        file.write_text(f"goal: another task with that name\n{text}")
    await TaskReports(forge, outbox, folder_queue(tmp_path), WorkerLog(print, SetClock(), str)).send_again()
    assert (forge.told, await asyncio.to_thread(outbox.pending)) == ([result.task], ())
    assert claim.task.id == definition_facts(f"{text}goal: x y\n", name).id, "the id that branch and result have"


async def test_a_result_of_a_task_that_has_another_id_in_the_queue_is_sent_again(tmp_path: Path) -> None:
    result = replace(RESULT, session=SessionId(ELSEWHERE))
    queue = await ended_queue(result, session=ELSEWHERE, name="gitea-42")
    forge, outbox = SilentForge(0), ReportOutbox(tmp_path / "reports")
    reports = TaskReports(forge, outbox, queue, WorkerLog(print, SetClock(), str))
    await reports.expect(result)
    await reports.send_again()
    assert forge.told == [result.task]


def folder_queue(folder: Path) -> FolderQueue:
    files, records = QueueFiles(folder, ("tasks",)), QueueRecords(folder / "state")
    return FolderQueue(files, records, SetClock(), definition_facts, frozenset)
