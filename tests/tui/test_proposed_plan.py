"""A plan of the model in the plan pane: seen in full, arranged task by task, and decided at the gate."""

import pytest
from msgspec.structs import replace
from textual.widgets import Input, TextArea

from agent_workbench.core.events import ActionDecided, ActionProposed, Author, PlanAsked, PlanSurveyed, ProposalReplaced
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.intents import (
    AbortTask,
    ApproveProposal,
    ArrangePlan,
    EditProposal,
    OpenPlan,
    ProposePlan,
    RejectProposal,
    SkipProposal,
)
from agent_workbench.core.live import Live, Streaming
from agent_workbench.core.outcomes import PlanOpened
from agent_workbench.core.plan import PlanPiece, Task
from agent_workbench.core.proposal_kinds import PlanProposal
from agent_workbench.core.proposals import PROPOSE_PLAN, Proposal, Verdict, shown_sha
from agent_workbench.core.proposed_plan import ProposedPlan, ProposedTask
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import MIDDLE, SMALL, Driver, driving

T7, T8, T9 = TaskId("T-7"), TaskId("T-8"), TaskId("T-9")
TASKS = (
    Task(T7, "Read the numbers from a file", "read() returns a list", "read() in calc.py", ("pytest -q",)),
    Task(
        T8,
        "Add them up [@click=app.quit]x[/]",
        "the sum is printed " * 70,
        accept_tests=("rm -rf ~",),
        depends_on=(T7,),
    ),
    Task(T9, "Tell of it"),
)
PLAN = ProposedPlan("sum a file", tuple(map(ProposedTask, TASKS)))


def proposal(plan: ProposedPlan = PLAN) -> Proposal:
    text = "\n".join(f"- id: {task.id}" for task in plan.taken)
    return PlanProposal(
        ProposalId("P-9"),
        PROPOSE_PLAN,
        text,
        1,
        paths=("PLAN.yaml",),
        special=("rm -rf ~",),
        plan=plan,
    )


def waiting() -> ScriptedSession:
    return ScriptedSession(*runs.opening(), PlanAsked("sum a file", 1), PlanSurveyed(), ActionProposed(proposal()))


async def seen(bench: Driver) -> None:
    """Scroll the proposal to its end."""
    for _ in range(12):
        await bench.press("pagedown")
    bench.clock.advance(1)


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_the_plan_is_in_front_and_is_approved_only_when_all_of_it_was_seen(size: tuple[int, int]) -> None:
    session = waiting()
    async with driving(session, size) as bench:
        assert bench.gate.has_focus
        text = bench.text()
        assert "T-7  Read the numbers" in text
        assert "pytest" in text
        bench.clock.advance(1)
        if size == SMALL:
            assert "not shown yet" in text
            await bench.press("a")
            assert session.intents == []
        await seen(bench)
        await bench.press("a")
        assert session.intents == [], "an unusual command needs a second look"
        assert "rm -rf ~" in bench.text()
        bench.clock.advance(1)
        await bench.press("a")
        assert session.intents == [ApproveProposal(ProposalId("P-9"), shown_sha(proposal()))]


async def test_tasks_are_left_moved_edited_and_the_plan_replaced_from_the_pane() -> None:
    session = waiting()
    async with driving(session, SMALL) as bench:
        await bench.press("1", "space")
        order, p9 = (T7, T8, T9), ProposalId("P-9")
        assert session.intents == [ArrangePlan(p9, order, left=(T7,))]
        left = replace(PLAN, tasks=(ProposedTask(TASKS[0], taken=False), *PLAN.tasks[1:]))
        await bench.record(ProposalReplaced(proposal(left), "arranged", Author.USER))
        assert bench.pane("plan").has_focus, "who arranges stays in the pane"
        assert "Proposed 2/3 · append" in bench.text()
        assert "left out" in bench.text()
        session.intents.clear()
        await bench.press("space", "J", "=", "s")
        assert session.intents == [
            ArrangePlan(p9, order),
            ArrangePlan(p9, (T8, T7, T9), left=(T7,)),
            ArrangePlan(p9, order, left=(T7,), replaces=True),
        ]
        assert "only proposed" in bench.text()
        session.intents.clear()
        await bench.press("G", "e")
        piece = PlanPiece("proposed plan", "- id: T-8\n- id: T-9\n", 10, 20, "- id: T-9\n", 2, 2, T9)
        await bench.answer(PlanOpened(piece))
        assert bench.screen.query_one(TextArea).text == "- id: T-9\n"
        await bench.press("x", "ctrl+s")
        assert session.intents == [OpenPlan(T9, proposal=p9), EditProposal(p9, "- id: T-8\nx- id: T-9\n")]


async def test_a_plan_is_asked_for_refused_with_a_reason_and_put_aside() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session, SMALL) as bench:
        await bench.press("1", "P")
        bench.screen.query_one(Input).value = "sum a file"
        await bench.press("enter")
        assert session.intents == [ProposePlan("sum a file")]
        await bench.record(PlanAsked("sum a file", 1), PlanSurveyed())
        await bench.live(Live(activity="planning", streaming=Streaming("Task: Read", tokens=3)))
        assert "Task: Read" in bench.text()
        assert "planning" in bench.text()
        await bench.press("X")
        assert session.intents[1:] == [AbortTask()]
        await bench.live(Live())
        await bench.record(ActionProposed(proposal()))
        bench.clock.advance(1)
        await bench.press("0", "r")
        bench.screen.query_one(Input).value = "too much"
        await bench.press("enter")
        assert session.intents[2:] == [RejectProposal(ProposalId("P-9"), "too much")]
        bench.clock.advance(1)
        await bench.press("s")
        assert session.intents[3:] == [SkipProposal(ProposalId("P-9"))]
        await bench.record(ActionDecided(ProposalId("P-9"), Verdict.SKIP, "user"))
        assert "T-1" in bench.text()
        await bench.press("1", "P")
        assert bench.screen.query_one(Input).value == "sum a file", "the same goal shows the plan again"


async def test_a_new_task_is_written_while_a_plan_waits() -> None:
    session = waiting()
    async with driving(session, SMALL) as bench:
        await bench.press("1", "n")
        assert session.intents == [OpenPlan(T7, new=True)]
