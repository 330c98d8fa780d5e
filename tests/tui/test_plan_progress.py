"""The plan's tasks in the queue on the screen: a live tree, dispatch after a question, cancellation, a new plan."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import SessionId, TaskId
from agent_workbench.core.intents import OpenPlan, ProposePlan
from agent_workbench.core.plan import Task, TaskStatus
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.task_estimates import Complexity, Estimate, Intent, Needs, Spread
from agent_workbench.subjects.dispatch.preparation import Dispatch, PlanApproval, PreparedTask, TaskRemark
from agent_workbench.subjects.dispatch.progress import Cancelled, PlanProgress, TaskCost, TaskProgress, TaskState
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, Driver, driving
from tests.tui.test_pictures import THREE_SIZES, draw_screen

SESSION = SessionId("20261120T091500-zz2345")
ESTIMATE = Estimate(Spread(6, 4, 8), Spread(42_000, 30_000, 60_000), Spread(12, 9, 15), Spread(0, 0, 0), 7, Intent.CODE)


def progress_of(number: int, state: TaskState, words: str, **fields: object) -> TaskProgress:
    queued = TaskStatus.PENDING if state is TaskState.PLANNED else TaskStatus.QUEUED
    task = Task(TaskId(f"T-{number}"), words, status=queued, queued_as=f"T-{number}-abcdef", intent=Intent.CODE)
    return replace(TaskProgress(task, state, estimate=ESTIMATE, complexity=Complexity.COMPLEX), **fields)


TREE = (
    progress_of(1, TaskState.DONE, "Add a table of prices", why="committed", cost=TaskCost(7, 51_200, 11.2, 0.0)),
    progress_of(2, TaskState.RUNNING, "Read prices from the table", depth=1, worker="gpu-box", session=SESSION),
    progress_of(3, TaskState.WAITING, "Remove the old file of prices", depth=2, why="waits for T-2", estimate=None),
    progress_of(4, TaskState.PARKED, "Show prices in the cart", why="diff of cart.py", item="091500-zz2345/P-14"),
    progress_of(5, TaskState.QUEUED, "Train the ranking", why="gpu-box: busy with 1 of 1 jobs"),
    progress_of(6, TaskState.FAILED, "Deploy the shop", why="its checks fail", estimate=None),
    progress_of(7, TaskState.PLANNED, "Measure it", why="not dispatched", estimate=None),
)


class GivenWork:
    """Implements `subjects.dispatch.progress.PlanWork` over what it was given; keeps what was asked."""

    def __init__(self, *tasks: TaskProgress) -> None:
        self.shown = PlanProgress("Prices come from a table", tasks, "tasks/queue/default", 2)
        self.prepared = Dispatch()
        self.asked: list[str] = []
        self.away = ""
        self.hangs = asyncio.Event()
        self.hangs.set()

    async def progress(self) -> PlanProgress:
        await self.hangs.wait()
        return replace(self.shown, problem=self.away)

    async def settle(self) -> None:
        self.asked.append("settle")
        self.shown = replace(self.shown, unsettled=())

    async def prepare(self, wanted: Sequence[TaskId] = ()) -> Dispatch:
        if self.away:
            raise StorageError(self.away)
        return self.prepared

    async def dispatch(self, shown: Dispatch, wanted: Sequence[TaskId] = ()) -> Dispatch:
        self.asked.append(f"dispatch {shown.digest == self.prepared.digest}")
        return shown

    async def cancel(self, wanted: Sequence[TaskId], reason: str = "") -> Cancelled:
        self.asked.append(f"cancel {' '.join(wanted) or 'all'}")
        return Cancelled(tuple(wanted), (TaskRemark(TaskId("T-9"), "it ended meanwhile"),))

    async def close(self) -> None:
        self.asked.append("close")


async def opened(bench: Driver) -> Driver:
    await bench.press("Q")
    await bench.until(lambda: "Plan in the queue" in bench.text() and "T-1" in bench.text())
    return await bench.look()


@pytest.mark.slow
async def test_the_tree_says_what_each_task_does_and_what_it_cost(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    monkeypatch.setattr("agent_workbench.subjects.dispatch.screen.RELOAD_SECONDS", 0.1)
    work = GivenWork(*TREE)
    async with driving(ScriptedSession(*runs.opening()), LARGE, plan_work=lambda: work) as bench:
        await opened(bench)
        for words in (
            "7 of about 6 steps, 51,200 of 42,000 tokens, 11.2 of 12.0 min",
            "on gpu-box",
            "waits for T-2",
            "091500-zz2345/P-14  diff of cart.py",
            "gpu-box: busy with 1 of 1 jobs",
            "1 running · 1 parked",
            "in tasks/queue/default · 2 workers",
        ):
            assert words in bench.text()
        wrong = await draw_screen(bench, "plan_progress", THREE_SIZES, pytestconfig, tmp_path)
        work.shown = replace(work.shown, tasks=(replace(TREE[0], state=TaskState.RUNNING), *TREE[1:]))
        await bench.until(lambda: "2 running" in bench.text())
        work.away = "the database does not answer"
        await bench.until(lambda: "so this may be old: the database does not answer" in bench.text())
        await bench.press("q")
        assert bench.screen.name == "workbench"
        assert work.asked == ["close"]
    assert not wrong, wrong


async def test_what_ended_in_the_queue_is_settled_once_it_is_shown() -> None:
    work = GivenWork(*TREE)
    work.shown = replace(work.shown, unsettled=(TREE[0].task.id,))
    async with driving(ScriptedSession(*runs.opening()), LARGE, plan_work=lambda: work) as bench:
        await opened(bench)
        await bench.until(lambda: work.asked == ["settle"])
        await bench.press("escape")
    assert work.asked == ["settle", "close"]


async def test_no_key_waits_for_a_queue_that_hangs() -> None:
    work = GivenWork(*TREE)
    work.hangs.clear()
    async with driving(ScriptedSession(*runs.opening()), LARGE, plan_work=lambda: work) as bench:
        await bench.press("Q")
        await bench.until(lambda: "reading the plan and the queue" in bench.text())
        await bench.press("j", "D")
        await bench.until(lambda: "nothing is to be queued" in bench.text() or not work.prepared.tasks)
        await bench.press("escape")
        assert bench.screen.name == "workbench"


async def test_a_dispatch_shows_who_approved_what_and_queues_after_a_yes() -> None:
    work = GivenWork(*TREE)
    tasks = [replace(each.task, needs=Needs(24.0)) for each in TREE[:2]]
    given = PlanApproval("20261120T091500-zz2345/P-8", "user (inbox: ada@lab)")
    work.prepared = Dispatch(
        (PreparedTask(tasks[0], tasks[0], given), PreparedTask(tasks[1], tasks[1])),
        unmet=(TaskRemark(TaskId("T-2"), "no worker has 24 GB of GPU memory"),),
    )
    async with driving(ScriptedSession(*runs.opening()), LARGE, plan_work=lambda: work) as bench:
        await opened(bench)
        await bench.press("D")
        await bench.until(lambda: "Dispatch to the queue" in bench.text())
        await bench.look()
        for words in ("approved by user (inbox: ada@lab)", "NOT APPROVED as it is now", "no worker can do T-2", "GPU"):
            assert words in bench.text()
        await bench.press("n")
        assert work.asked == []
        await bench.press("D")
        await bench.until(lambda: "Dispatch to the queue" in bench.text())
        await bench.look()
        await bench.press("y")
        await bench.until(lambda: "queued: T-1, T-2" in bench.text())
        assert work.asked == ["dispatch True"]


@pytest.mark.slow
async def test_a_task_is_taken_back_after_a_yes_and_another_one_is_not() -> None:
    work = GivenWork(*TREE)
    async with driving(ScriptedSession(*runs.opening()), LARGE, plan_work=lambda: work) as bench:
        await opened(bench)
        await bench.press("j", "x")
        await bench.until(lambda: "Take T-2 back" in bench.text())
        await bench.look()
        await bench.press("y")
        await bench.until(lambda: "taken back: T-2; T-9: it ended meanwhile" in bench.text())
        await bench.press("G", "x")
        await bench.until(lambda: "T-7 is not in the queue" in bench.text())
        await bench.press("X")
        await bench.until(lambda: "Take all tasks back" in bench.text())
        await bench.look()
        await bench.press("y")
        await bench.until(lambda: len(work.asked) == 2)
        assert work.asked == ["cancel T-2", "cancel all"]


@pytest.mark.slow
async def test_enter_opens_the_session_and_a_new_plan_is_asked_for_what_is_left() -> None:
    work, session = GivenWork(*TREE), ScriptedSession(*runs.opening())
    there = ScriptedSession(replace(runs.opening()[0], session=SESSION)).as_followed()
    async with driving(session, LARGE, others=[there], plan_work=lambda: work) as bench:
        await opened(bench)
        await bench.press("enter")
        await bench.until(lambda: "T-1 has no session yet" in bench.text())
        await bench.press("P")
        await bench.until(lambda: "Plan anew what is not over" in bench.text())
        await bench.press(*"again", "enter")
        await bench.until(lambda: len(session.intents) == 2)
        assert session.intents == [OpenPlan(), ProposePlan("again", rest=True)], "what was written to the plan is read"
        await opened(bench)
        await bench.press("j", "enter")
        await bench.until(lambda: bench.opened != [])
        assert bench.opened == [SessionRequest(OpenMode.FOLLOW, SESSION)]
