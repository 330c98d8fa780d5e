"""Queries about the plan in the queue write nothing; what ended there is settled by a command of its own."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.bootstrap.repo_context import RepoContext, find_repo
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.ports.task_queue import QueuedTask, QueueState
from agent_workbench.core.session_request import Invocation
from agent_workbench.subjects.dispatch.calls import opened_plan_work
from agent_workbench.subjects.dispatch.progress import TaskState
from agent_workbench.subjects.queue.wiring import project_queue
from tests.adapters.git.user import User, make_repo

T1, NAME = TaskId("T-1"), "T-1-abc"
PLAN = "memory/plans/PLAN.yaml"
TASKS = "version: 1\ntasks:\n  # by hand\n  - {id: T-1, description: Add it}\n  - {id: T-2, description: Say it}\n"


def written(root: Path) -> dict[str, bytes]:
    """Return all files of the repository, those of git too."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


async def ended_in_queue(repo: RepoContext, state: QueueState, reason: str) -> None:
    """Queue the first task as a dispatch does, and end it there."""
    settings = await asyncio.to_thread(lambda: repo.settings(trusted=True))
    await repo.plans(settings).set_status(T1, TaskStatus.QUEUED, NAME)
    queue = await project_queue(repo, settings)
    try:
        await queue.put(QueuedTask(NAME, "id: T-1-abc\ndescription: Add it\n"))
        if state is QueueState.WITHDRAWN:
            await queue.withdraw(NAME, reason)
        elif (claim := await queue.claim("worker", 60)) is not None:
            await queue.finish(claim, state, reason)
    finally:
        await queue.close()


@pytest.mark.parametrize(
    ("state", "shown", "then"),
    [
        (QueueState.DONE, TaskState.DONE, "status: done"),
        (QueueState.FAILED, TaskState.FAILED, "status: failed"),
        (QueueState.WITHDRAWN, TaskState.CANCELLED, "status: blocked"),
    ],
)
async def test_a_query_shows_what_ended_and_only_settling_writes_it(
    state: QueueState, shown: TaskState, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    user: User = make_repo(tmp_path / "repo", {PLAN: TASKS})
    invocation = Invocation(user.root, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, {})
    await ended_in_queue(await find_repo(invocation), state, "enough")
    async with opened_plan_work(invocation) as work:
        before = await asyncio.to_thread(written, user.root)
        progress = await work.progress()
        assert [each.state for each in progress.tasks] == [shown, TaskState.PLANNED]
        assert progress.unsettled == (T1,)
        await work.prepare()
        assert await asyncio.to_thread(written, user.root) == before
        await work.settle()
        after = await asyncio.to_thread(written, user.root)
        assert then in after[PLAN].decode()
        assert {path for path in after if after[path] != before.get(path)} == {PLAN}
        again = await work.progress()
        assert ([each.state for each in again.tasks], again.unsettled) == ([shown, TaskState.PLANNED], ())
