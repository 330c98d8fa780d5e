from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode, ModelError, ModelUnavailable
from agent_workbench.core.ids import TaskId
from agent_workbench.core.model import Purpose
from agent_workbench.core.model_settings import RoleSampling
from agent_workbench.core.plan import Plan, Task
from agent_workbench.engine.task.planner import GRAMMAR, MAX_TASKS, make_plan, plan_request, read_tasks
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle
from tests.fakes.ports import FACTS, Break, Cut, SayingModel

ONE = "Task: Add it\nGoal: it is there\nAccept: pytest -q\n"
TWO = ONE + "Task: Document it\nGoal: one can read it\nAccept: \n"
EXISTING = Plan((Task(TaskId("T-4"), "old"),))


def test_tasks_are_read_in_order_and_numbered_on() -> None:
    assert read_tasks(TWO, EXISTING) == (
        Task(TaskId("T-5"), "Add it", "it is there", accept_tests=("pytest -q",)),
        Task(TaskId("T-6"), "Document it", "one can read it"),
    )


def test_room_around_lines_does_not_matter() -> None:
    assert read_tasks("\n  Task:Add it\n\nGoal :  it is there\nAccept: a: b\n\n", Plan()) == (
        Task(TaskId("T-1"), "Add it", "it is there", accept_tests=("a: b",)),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not in the form"),
        ("\n \n", "not in the form"),
        ("Sure! Here is a plan.", "not in the form"),
        ("Task: a\nGoal: b\n", "not in the form"),
        (ONE + "Task: a\n", "not in the form"),
        (ONE * (MAX_TASKS + 1), "not in the form"),
        ("Task: a\nAccept: c\nGoal: b\n", "'Accept: c' where a line `Goal: …` belongs"),
        ("1. a\n2. b\n3. c\n", "'1. a' where a line `Task: …` belongs"),
        ("Task a\nGoal: b\nAccept: c\n", "'Task a' where a line `Task: …` belongs"),
        ("task: a\nGoal: b\nAccept: c\n", "'task: a' where"),
        ("Task:\nGoal: b\nAccept: c\n", "a task without words"),
    ],
)
def test_what_keeps_to_no_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ModelError) as refused:
        read_tasks(text, Plan())
    assert reason in str(refused.value)
    assert refused.value.exit_code is ExitCode.MODEL, "the command line and the plan are as they should be"


async def test_a_model_is_asked_and_its_plan_read() -> None:
    model = SayingModel([TWO])
    tasks = await make_plan(model, "make it", ("a.py", "b.py"), EXISTING, 5.0)
    assert [task.id for task in tasks] == ["T-5", "T-6"]
    (request,) = model.requests
    assert request.purpose is Purpose.PLANNER
    assert "Goal: make it" in request.messages[-1].text
    assert "a.py\nb.py" in request.messages[-1].text
    assert request.grammar == GRAMMAR
    assert model.streams_ended == 1


async def test_a_server_without_grammars_is_asked_all_the_same() -> None:
    model = SayingModel([ONE], replace(FACTS, takes_grammar=False))
    assert len(await make_plan(model, "make it", (), Plan(), 5.0)) == 1
    assert model.requests[0].grammar == ""


async def test_a_cut_plan_is_no_plan() -> None:
    with pytest.raises(ModelError, match="cut at the token limit"):
        await make_plan(SayingModel([Cut(ONE)]), "make it", (), Plan(), 5.0)


async def test_a_plan_that_breaks_off_is_no_plan() -> None:
    with pytest.raises(ModelUnavailable):
        await make_plan(SayingModel([Break(ONE)]), "make it", (), Plan(), 5.0)


async def test_a_dead_server_is_an_error() -> None:
    with pytest.raises(ModelUnavailable):
        await make_plan(SayingModel([ModelUnavailable("gone")]), "make it", (), Plan(), 5.0)


def test_only_so_many_files_are_listed() -> None:
    request = plan_request("it", tuple(f"file{number}" for number in range(10_000)), 1.0, takes_grammar=True)
    assert len(request.messages[-1].text) < 4_000


async def test_the_servers_grammar_is_the_readers_form(tmp_path: Path) -> None:
    wrong = [ONE[:-1], "Task: \nGoal: b\nAccept: c\n", ONE + "more", "Task: a\nGoal: b\n"]
    async with grammar_oracle(tmp_path, [ONE, TWO, *wrong]) as server:
        assert [await fits(server, GRAMMAR, text) for text in (ONE, TWO)] == [True, True]
        assert [await fits(server, GRAMMAR, text) for text in wrong] == [False] * len(wrong)


async def test_who_comes_next_in_the_chain_makes_the_plan() -> None:
    broken = ModelUnavailable("gone")
    broken.another = True
    model = SayingModel([broken, ONE])
    tasks = await make_plan(model, "make it", (), EXISTING, 5.0, RoleSampling(temperature=0.3, seed=9))
    assert [task.id for task in tasks] == ["T-5"]
    assert [(request.sampling.temperature, request.seed) for request in model.requests] == [(0.3, 9)] * 2
