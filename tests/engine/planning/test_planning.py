"""A plan asked of the model: what it sees, the proposal at the gate, and what is written of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ContextOverflow, ModelUnavailable
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionResult,
    ActionStarted,
    PlanAnswered,
    PlanAsked,
    PlanPrompted,
    PlanRejected,
    PlanSurveyed,
    ProposalReplaced,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import InboxDecision, reference_to
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ArrangePlan,
    EditProposal,
    OpenPlan,
    ProposePlan,
    RetryTrouble,
    StartTask,
)
from agent_workbench.core.outcomes import Accepted, PlanOpened, Refused
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Approvals, Permission, Settings
from agent_workbench.core.settings.models import EndpointSettings, TokenPrice
from agent_workbench.core.settings.worker import WorkerSettings
from agent_workbench.engine.flow import Idle, next_move
from agent_workbench.engine.planning.plan_proposal import unusual_commands
from agent_workbench.engine.planning.plan_request import ANSWER_TOKENS
from agent_workbench.engine.prompt.messages import prompt_sha
from agent_workbench.views.plan import summary_text
from tests.adapters.plans.plan_files import PATH, content, plan_file
from tests.engine.front import Front, in_front_of
from tests.engine.stage import Stage, a_stage, reopened
from tests.fakes.ports import Cut, GivenChunks, Hang, Saying

PLAN = """\
# my plan
tasks:
  # the first one
  - id: T-1
    description: what I wrote   # by hand
    status: pending
"""
ANSWER = (
    "Task: Read the file\nGoal: it is read\nApproach: read() in answer.py\nAccept: grep -q right answer.txt\nAfter:\n"
    "Task: Test it\nGoal: a test fails without it\nAccept: pytest -q tests/test_answer.py\nAfter: 1\n"
    "Task: Tell of it\nAfter: 1, 2\n"
)
T1, T2, T3, T4 = (TaskId(f"T-{number}") for number in range(1, 5))
FOUND = (
    Chunk("README.md", 1, 1, "# Hello", 1.0, tokens=3),
    Chunk("tests/test_answer.py", 1, 1, "def test(): ...", 0.9, tokens=3),
    Chunk("private.txt", 1, 1, "untracked", 0.8, tokens=3),
)
SETTINGS = Settings(test_command="pytest -q", lint_command="ruff check .")
FLEET = replace(SETTINGS, worker=WorkerSettings(tags=("office",)))
FILES = {"answer.txt": "wrong\n", "README.md": "# Hello\n", "tests/test_answer.py": "def test(): ...\n"}


@asynccontextmanager
async def planning(
    folder: Path,
    *sayings: Saying,
    plan: str = PLAN,
    approvals: Approvals | None = None,
    settings: Settings = SETTINGS,
) -> AsyncIterator[Stage]:
    """Open a stage with a real plan file."""
    found = GivenChunks(FOUND)
    async with a_stage(folder, sayings, settings=settings, approvals=approvals, start=FILES, retriever=found) as stage:
        stage.session.ports = replace(stage.session.ports, plans=plan_file(stage.user.root, plan))
        yield stage


def priced(cap: float) -> Settings:
    """Return settings with an executor that costs, and what it may cost in a day."""
    price = EndpointSettings(url="http://127.0.0.1:9", dollars_per_million_tokens=TokenPrice(1.0, 1.0))
    return replace(
        SETTINGS, endpoints=(("far", price),), roles=replace(SETTINGS.roles, executor=("far",)), cost_cap_daily=cap
    )


@pytest.mark.parametrize(
    ("settings", "labels"), [(SETTINGS, False), (priced(0.0), False), (priced(1.0), True), (FLEET, True)]
)
async def test_the_model_is_asked_for_labels_only_where_they_decide_something(
    tmp_path: Path, settings: Settings, labels: bool
) -> None:
    async with planning(tmp_path, ANSWER, settings=settings) as stage, in_front_of(stage) as front:
        proposal = await proposed(front)
        assert proposal.plan is not None
        sent = "\n".join(message.text for message in stage.model.requests[0].messages)
        assert all((word in sent) is labels for word in ("Intent:", "Service:", "Needs:"))
        told = summary_text(proposal.plan)
        assert all((word in told) is labels for word in ("CPU only", "paid endpoint"))


async def proposed(front: Front, goal: str = "make it right", *, replaces: bool = False) -> Proposal:
    assert await front.outcome(ProposePlan(goal, replaces)) == Accepted()
    return await front.gate(Permission.PLAN)


def ids(proposal: Proposal) -> list[str]:
    assert proposal.plan is not None
    return [each.task.id for each in proposal.plan.tasks]


async def idle(front: Front) -> None:
    await front.until(lambda it: it.state.open_planning is None and isinstance(next_move(it.state), Idle), "idle")


async def test_the_planner_sees_code_tests_and_commands_and_its_plan_is_a_proposal(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        proposal = await proposed(front)
        (request,) = stage.model.requests
        text = request.messages[-1].text
        for words in (
            "Goal: make it right",
            "pytest -q\nruff check .",
            "README.md:1-1\n# Hello",
            "T-1 (pending): what",
        ):
            assert words in text
        assert text.index("Tests that may matter:\n\ntests/test_answer.py:1-1") > text.index("Code that may matter")
        assert "private" not in text, "an untracked file may be private"
        assert ids(proposal) == ["T-2", "T-3", "T-4"]
        assert proposal.kind is Permission.PLAN
        assert proposal.special == ("grep -q right answer.txt",), "no known program runs that"
        assert content(stage.user.root) == PLAN, "nothing is written before the decision"
        await front.approve(Permission.PLAN)
        await idle(front)
        assert content(stage.user.root).startswith(PLAN), "comments, order and spelling of the user's tasks are kept"
        assert [task.id for task in stage.state.plan.tasks] == [T1, T2, T3, T4]
        assert stage.state.plan.task(T4).depends_on == (T2, T3)
        kinds = [type(event) for event in stage.events]
        assert [kinds.count(each) for each in (PlanAsked, PlanSurveyed, PlanPrompted, PlanAnswered)] == [1] * 4
        prompted = next(event for event in stage.events if isinstance(event, PlanPrompted))
        assert prompted.sha == prompt_sha(request.messages)
        decided = next(event for event in stage.events if isinstance(event, ActionDecided))
        assert (decided.by, decided.verdict) == ("user", Verdict.APPROVE)


@pytest.mark.parametrize(
    ("line", "unusual"),
    [
        ("pytest -q", False),
        ("pytest -q tests/test_a.py::test_b", False),
        ("pytest tests", False),
        ("python -m pytest -q -k add", False),
        ("python -m http.server", True),
        ("python -m pytest -q; rm -rf ~", True),
        ("pytest -q\nrm -rf ~", True),
        ("pytest -q $(rm -rf ~)", True),
        ("pytestx -q", True),
        ("rm -rf ~", True),
    ],
)
def test_only_commands_like_the_known_ones_need_no_second_look(line: str, unusual: bool) -> None:
    known = ("pytest -q", "", "python -m pytest -q")
    assert unusual_commands([Task(T1, "a", accept_tests=(line,))], known) == ((line,) if unusual else ())


async def test_tasks_are_left_reordered_and_edited_and_only_the_shown_text_is_written(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        first = await proposed(front)
        arranged = await front.outcome(ArrangePlan(first.id, (T4, T2, T3), left=(T3,)))
        assert arranged == Accepted()
        assert isinstance(await front.outcome(ApproveProposal(first.id, shown_sha(first))), Refused)
        await front.passed(first)
        second = await front.gate(Permission.PLAN)
        assert (second.id, ids(second)) == (first.id, ["T-4", "T-2", "T-3"])
        assert "T-3" not in second.text
        opened = await front.outcome(OpenPlan(T4, proposal=second.id))
        assert isinstance(opened, PlanOpened)
        text = opened.piece.whole_with(opened.piece.text.replace("Tell of it", "[Tell"))
        refused = await front.outcome(EditProposal(second.id, text))
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("proposed plan:"), "a fault names line and column of the text"
        text = opened.piece.whole_with(opened.piece.text.replace("Tell of it", "Tell everybody"))
        assert await front.outcome(EditProposal(second.id, text)) == Accepted()
        await front.passed(second)
        third = await front.gate(Permission.PLAN)
        assert third.edited
        assert ids(third) == ["T-4", "T-2", "T-3"]
        await front.approve(Permission.PLAN)
        await idle(front)
        added = stage.state.plan.tasks[1:]
        assert [task.id for task in added] == [T4, T2]
        assert added[0].description == "Tell everybody"
        assert added[0].depends_on == (T2,), "what was left out is no dependency"


async def test_replace_archives_the_old_plan_and_gives_no_id_twice(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        proposal = await proposed(front, replaces=True)
        assert ids(proposal) == ["T-2", "T-3", "T-4"]
        await front.approve(Permission.PLAN)
        await idle(front)
        assert [task.id for task in stage.state.plan.tasks] == [T2, T3, T4]
        (archived,) = (stage.user.root / "memory/plans/archive").iterdir()
        assert archived.read_text() == PLAN


async def test_a_running_task_keeps_the_plan_from_being_replaced(tmp_path: Path) -> None:
    running = PLAN.replace("pending", "in_progress")
    async with planning(tmp_path, ANSWER, plan=running) as stage, in_front_of(stage) as front:
        proposal = await proposed(front)
        refused = await front.outcome(ArrangePlan(proposal.id, (T2, T3, T4), replaces=True))
        assert isinstance(refused, Refused)
        assert "T-1 is in progress" in refused.reason
        assert isinstance(await front.outcome(ArrangePlan(proposal.id, (T2, T3))), Refused)
        assert isinstance(await front.outcome(ArrangePlan(proposal.id, (T2, T3, T1))), Refused)


async def test_a_refused_plan_is_asked_for_again_with_the_reason(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER, "Task: Only this\n") as stage, in_front_of(stage) as front:
        await proposed(front, replaces=True)
        await front.reject(Permission.PLAN, "too much")
        again = await front.gate(Permission.PLAN)
        assert again.plan is not None
        assert again.plan.replaces, "what the user chose stays"
        assert ids(again) == ["T-2"]
        said = [message.text for message in stage.model.requests[-1].messages]
        assert said[-2] == ANSWER
        assert "The user refused this plan: too much" in said[-1]
        assert said[:2] == [message.text for message in stage.model.requests[0].messages], "the prompt only grows"


async def test_a_plan_put_aside_comes_back_without_the_model(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        first = await proposed(front)
        await front.outcome(ArrangePlan(first.id, (T3, T2, T4), left=(T4,)))
        await front.passed(first)
        await front.skip(Permission.PLAN)
        await idle(front)
        assert content(stage.user.root) == PLAN
        again = await proposed(front)
        assert again.plan is not None
        assert [(each.task.id, each.taken) for each in again.plan.tasks] == [
            (T3, True),
            (T2, True),
            (T4, False),
        ]
        assert len(stage.model.requests) == 1


@pytest.mark.parametrize("nonsense", ["I would rather not.", "", "Task: a\n" * 500, Cut(ANSWER)])
async def test_nonsense_is_told_to_the_model_and_at_last_to_the_user(tmp_path: Path, nonsense: Saying) -> None:
    async with planning(tmp_path, nonsense, nonsense, nonsense, ANSWER) as stage, in_front_of(stage) as front:
        await front.outcome(ProposePlan("make it right"))
        update = await front.trouble()
        assert update.state.trouble is not None
        assert "the model wrote no plan" in update.state.trouble.what
        assert "That is not a plan: " in stage.model.requests[-1].messages[-1].text
        assert content(stage.user.root) == PLAN
        await front.submit(RetryTrouble())
        await front.gate(Permission.PLAN)
        assert sum(isinstance(event, PlanRejected) for event in stage.events) == 3


async def test_a_plan_changed_by_hand_meanwhile_is_kept_and_the_gate_asks_again(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        first = await proposed(front)
        mine = PLAN + "  - {id: T-2, description: mine too, status: pending}  # meanwhile\n"
        (stage.user.root / PATH).write_text(mine)
        await front.approve(Permission.PLAN)
        again = await front.gate(Permission.PLAN)
        assert ids(again) == ["T-3", "T-4", "T-5"], "an id of the user's is never taken"
        assert shown_sha(again) != shown_sha(first)
        await front.approve(Permission.PLAN)
        await idle(front)
        assert content(stage.user.root).startswith(mine)
        assert [task.id for task in stage.state.plan.tasks] == ["T-1", "T-2", "T-3", "T-4", "T-5"]


async def test_a_plan_broken_meanwhile_is_trouble_and_goes_on_once_it_is_mended(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        await proposed(front)
        (stage.user.root / PATH).write_text("tasks: [")
        await front.approve(Permission.PLAN)
        update = await front.trouble()
        assert update.state.trouble is not None
        assert PATH in update.state.trouble.what
        assert content(stage.user.root) == "tasks: ["
        (stage.user.root / PATH).write_text(PLAN)
        await front.submit(RetryTrouble())
        await idle(front)
        assert len(stage.state.plan.tasks) == 4


@pytest.mark.parametrize("broken", ["tasks: [", "tasks:\n  - id: T-1\n    descripton: x\n"])
async def test_no_model_is_asked_where_the_plan_cannot_be_read(tmp_path: Path, broken: str) -> None:
    async with planning(tmp_path, plan=broken) as stage, in_front_of(stage) as front:
        refused = await front.outcome(ProposePlan("make it right"))
        assert isinstance(refused, Refused)
        assert PATH in refused.reason


async def test_planning_is_stopped_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with planning(tmp_path, Hang("Task: Re"), ANSWER) as stage, in_front_of(stage) as front:
        await front.outcome(ProposePlan("make it right"))
        await front.until(lambda it: it.live.streaming is not None and it.live.streaming.text, "text")
        assert isinstance(await front.outcome(StartTask(T1)), Refused)
        assert isinstance(await front.outcome(ProposePlan("another")), Refused)
        assert await front.outcome(AbortTask()) == Accepted()
        await idle(front)
        stopped = next(event for event in stage.events if isinstance(event, PlanAnswered))
        assert (stopped.text, bool(stopped.stopped)) == ("Task: Re", True)
        assert ids(await proposed(front)) == ["T-2", "T-3", "T-4"], "the same goal can be asked for again"


async def test_a_prompt_that_is_too_long_shows_less(tmp_path: Path) -> None:
    async with planning(tmp_path, ContextOverflow("too long"), ANSWER) as stage, in_front_of(stage) as front:
        await proposed(front)
        first, second = (request.messages[-1].text for request in stage.model.requests)
        assert len(second) < len(first)


async def test_a_prompt_that_leaves_no_room_for_the_plan_is_not_sent(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage, in_front_of(stage) as front:
        facts = await stage.model.observe()
        stage.model.facts = replace(facts, context_tokens=ANSWER_TOKENS + 1)
        await front.outcome(ProposePlan("make it right"))
        await front.gate(Permission.PLAN)
        (request,) = stage.model.requests
        assert "answer.txt" not in request.messages[-1].text, "all that can be left out is left out"


async def test_a_dead_server_is_trouble_and_the_goal_is_kept(tmp_path: Path) -> None:
    async with planning(tmp_path, ModelUnavailable("gone"), ANSWER) as stage, in_front_of(stage) as front:
        await front.outcome(ProposePlan("make it right"))
        await front.trouble()
        await front.submit(RetryTrouble())
        await front.gate(Permission.PLAN)


async def test_the_policy_decides_like_a_person(tmp_path: Path) -> None:
    opened = Approvals(plan=Approval.AUTO)
    async with planning(tmp_path / "1", ANSWER, approvals=opened) as stage, in_front_of(stage) as front:
        await front.outcome(ProposePlan("make it right"))
        proposal = await front.gate(Permission.PLAN)
        assert proposal.special, "a command that nobody knows waits for a person"
    usual = ANSWER.replace("grep -q right answer.txt", "pytest -q -k right")
    async with planning(tmp_path / "2", usual, approvals=opened) as stage, in_front_of(stage) as front:
        await front.outcome(ProposePlan("make it right"))
        await front.until(lambda it: len(it.state.plan.tasks) == 4, "a longer plan")
        await idle(front)
    shut = Approvals(plan=Approval.DENY)
    async with planning(tmp_path / "3", approvals=shut) as stage, in_front_of(stage) as front:
        assert isinstance(await front.outcome(ProposePlan("make it right")), Refused)


async def test_a_waiting_plan_is_decided_from_the_inbox(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage:
        async with in_front_of(stage) as front:
            proposal = await proposed(front)
            reference = reference_to(stage.state.session, proposal)
        assert reference is not None
        decision = InboxDecision(reference, Verdict.APPROVE, made_by="somebody", made_at="2026-01-02T03:04:05.000000Z")
        await stage.ports.inbox.put(decision)
        async with reopened(stage) as again:
            again.session.ports = replace(again.session.ports, plans=plan_file(stage.user.root))
            async with in_front_of(again) as front:
                await idle(front)
            assert len(again.state.plan.tasks) == 4
            assert any(isinstance(event, ActionDecided) and event.via for event in again.events)


async def test_a_stop_while_the_plan_is_written_is_unknown_and_not_repeated(tmp_path: Path) -> None:
    async with planning(tmp_path, ANSWER) as stage:
        async with in_front_of(stage) as front:
            proposal = await proposed(front)
        async with reopened(stage) as again:
            again.session.ports = replace(again.session.ports, plans=plan_file(stage.user.root))
            await again.session.record(ActionDecided(proposal.id, Verdict.APPROVE, "user"))
            await again.session.record(ActionStarted(proposal.id))
            async with in_front_of(again) as front:
                await idle(front)
                await front.told("was stopped while it wrote the plan")
            assert content(stage.user.root) == PLAN
            (finished,) = (event for event in again.events if isinstance(event, ActionFinished))
            assert finished.result is ActionResult.UNKNOWN


async def test_what_happened_is_folded_the_same_from_the_journal(tmp_path: Path) -> None:
    async with planning(tmp_path, "nonsense", ANSWER) as stage, in_front_of(stage) as front:
        await proposed(front)
        await front.reject(Permission.PLAN, "no")
        assert isinstance(stage.read_back().planning, type(stage.state.planning))
        assert stage.state.plan == Plan(stage.state.plan.tasks)
        assert stage.state.plan.task(T1).status is TaskStatus.PENDING
        assert not any(isinstance(event, ActionFinished | ProposalReplaced) for event in stage.events)
