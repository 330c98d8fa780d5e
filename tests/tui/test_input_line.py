"""The input line: words become a task that is shown first, or go to the model; `@` and `/` are completed."""

import pytest
from msgspec.structs import replace
from textual import events
from textual.widgets import TextArea

from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import AddTask, CompleteCode, DraftTask, OpenPlan, SayToModel, StartTask
from agent_workbench.core.outcomes import Accepted, CodeCompleted, PlanOpened, Refused, TaskAdded, TaskDrafted
from agent_workbench.core.plan import PathScope, PlanPiece, Task, TaskDraft
from agent_workbench.core.repo.retrieval import Completion
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import MIDDLE, SMALL, Driver, driving

T4 = TaskId("T-4")
TASK = Task(
    runs.T3,
    "round in @shop/cart.py: to cents",
    "A new test shows it.",
    accept_tests=("pytest -q tests/test_cart.py",),
    scope=PathScope(("shop/**", "tests/**")),
)
DRAFT = TaskDraft(TASK, ("shop/cart.py",), ("[@click=app.approve]@x is no file\x1b[2J",))
FOUND = CodeCompleted("car", (Completion("shop/cart.py"), Completion("shop/cart.py:3-9", "Cart.total")), "indexing")


def idle() -> ScriptedSession:
    return ScriptedSession(*runs.opening())


def area(bench: Driver) -> TextArea:
    return bench.screen.query_one(TextArea)


async def drafted(bench: Driver, words: str = "round it") -> None:
    """Type words, send them, and get the task that they become."""
    await bench.press(":", *words, "enter")
    assert bench.session.intents[-1] == DraftTask(words, seen=True)
    await bench.answer(TaskDrafted(DRAFT))


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("size", [SMALL, MIDDLE])
async def test_words_become_a_task_that_is_shown_and_started(size: tuple[int, int]) -> None:
    async with driving(idle(), size) as bench:
        await drafted(bench)
        shown = bench.text()
        assert bench.screen.name == "draft"
        for words in (
            *TASK.description.split(),
            *TASK.accept_tests,
            "shop/**  tests/**",
            "A new test shows it.",
            "␛[2J",
        ):
            assert words in shown
        await bench.press("enter")
        assert "too quick" in bench.text(), "keys typed ahead start nothing"
        assert len(bench.session.intents) == 1
        bench.clock.advance(1.0)
        await bench.press("enter")
        assert bench.session.intents[1:] == [AddTask(TASK)]
        await bench.answer(TaskAdded(replace(TASK, id=T4)))
        assert bench.session.intents[2:] == [StartTask(T4)]
        assert f"it became {T4}" in bench.text()
        await bench.press(":")
        assert area(bench).text == "", "what became a task is not offered again"


@pytest.mark.slow
async def test_a_task_is_only_added_or_edited_or_not_written_at_all() -> None:
    async with driving(idle()) as bench:
        await drafted(bench)
        await bench.press("escape")
        assert area(bench).text == "round it", "the words are kept"
        await bench.press("enter")
        await bench.answer(TaskDrafted(DRAFT))
        await bench.press("a")
        await bench.answer(TaskAdded(TASK))
        assert bench.session.intents[1:] == [DraftTask("round it", seen=True), AddTask(TASK)]
        await drafted(bench)
        await bench.press("e")
        assert bench.session.intents[-1] == OpenPlan(new=True, draft=TASK)
        await bench.answer(PlanOpened(PlanPiece("PLAN.yaml", "", 0, 0, "- id: T-9\n", new=True)))
        assert area(bench).text == "- id: T-9\n"


async def test_a_refusal_keeps_line_and_words() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"fix x", "enter")
        await bench.answer(Refused("memory/plans/PLAN.yaml:3:1: this is not YAML"))
        assert "PLAN.yaml:3:1" in bench.text()
        assert area(bench).text == "fix x"
        await bench.press("!", "enter")
        await bench.answer(TaskDrafted(DRAFT))
        bench.clock.advance(1.0)
        await bench.press("enter")
        await bench.answer(Refused("PLAN.yaml:3:1: this is not YAML"))
        assert "the task was not added: PLAN.yaml:3:1" in bench.text()
        await bench.press(":")
        assert area(bench).text == "fix x!"


async def test_the_line_follows_a_task_that_starts_and_says_so() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"use cents")
        assert "New task" in bench.text()
        await bench.record(*runs.started())
        assert "To the model" in bench.text()
        await bench.press("enter")
        assert bench.session.intents == [SayToModel("use cents")]


async def test_what_was_said_may_have_a_remark_or_be_refused() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    session.outcome = Refused("that is too much")
    async with driving(session) as bench:
        await bench.press(":", "x", "enter")
        assert "that is too much" in bench.text()
        assert area(bench).text == "x"
        session.outcome = Accepted("@y is not pinned")
        await bench.press("enter")
        assert "@y is not pinned" in bench.text()
        assert bench.screen.name == "workbench"


async def test_files_and_symbols_are_completed_at_the_mark() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"fix @car")
        asked = [each for each in bench.session.intents if isinstance(each, CompleteCode)]
        assert asked[-1] == CompleteCode("car")
        while len(bench.session.open_questions) > 1:
            bench.session.open_questions.pop(0)
        await bench.answer(FOUND)
        assert "Cart.total" in bench.text()
        assert "indexing" in bench.text()
        await bench.press("down", "tab")
        assert area(bench).text == "fix @shop/cart.py:3-9 "
        assert "Cart.total" not in bench.text()
        await bench.press(*"now", "enter")
        assert bench.session.intents[-1] == DraftTask("fix @shop/cart.py:3-9 now", seen=True)


async def test_what_is_indexed_meanwhile_is_offered_without_another_key() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"fix @car")
        while len(bench.session.open_questions) > 1:
            bench.session.open_questions.pop(0)
        await bench.answer(CodeCompleted("car", (), "symbols are being indexed"))
        assert "being indexed" in bench.text()
        await bench.until(lambda: bool(bench.session.open_questions))
        await bench.answer(replace(FOUND, remark=""))
        assert ("Cart.total" in bench.text(), "indexed" in bench.text()) == (True, False)
        assert not bench.session.open_questions


async def test_keys_do_not_wait_for_completion_and_a_late_one_is_passed_over() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"fix @car and go")
        assert area(bench).text == "fix @car and go"
        for question in bench.session.open_questions:
            if not question.done():
                question.set_result(FOUND)
        await bench.idle()
        assert "Cart.total" not in bench.text()
        await bench.press("enter")
        assert bench.session.intents[-1] == DraftTask("fix @car and go", seen=True)


async def test_commands_are_completed_and_run() -> None:
    async with driving(ScriptedSession(*runs.up_to_commit())) as bench:
        await bench.press(":", *"/und")
        assert "/undo" in bench.text()
        assert "Undo the last diff" in bench.text()
        await bench.press("enter")
        assert "Undo the diff of step" in bench.text()
        assert bench.session.intents == []


async def test_a_command_takes_no_words_and_what_is_none_is_refused() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"/undo the last thing", "enter")
        assert "takes no words" in bench.text()
        assert bench.session.intents == []
        area(bench).text = "/nothing_like_it"
        await bench.press("enter")
        assert bench.session.intents == [DraftTask("/nothing_like_it", seen=True)], "the session knows the prompts"
        await bench.answer(Refused("there is no prompt /nothing_like_it"))
        assert "there is no prompt" in bench.text()


FIX = CustomPrompt("fix", "Fix $1 in @shop/cart.py.\nAt once.", "memory/commands/fix.md", "[bold]Fix[/] a bug")


def with_prompts(session: ScriptedSession) -> ScriptedSession:
    session.prompts = {"fix": FIX, "undo": replace(FIX, name="undo", description="a prompt of that name")}
    session.about_prompts = "memory/commands/review.md: /review asks a consultant"
    return session


async def test_prompts_are_completed_and_become_tasks() -> None:
    async with driving(with_prompts(idle()), SMALL) as bench:
        await bench.press(":", *"/fi")
        shown = bench.text()
        assert "/fix  [bold]Fix[/] a bug" in shown
        assert "/review asks a consultant" in shown
        await bench.press("enter")
        assert area(bench).text == "/fix ", "Enter completes a name that is only begun"
        await bench.press(*"it", "enter")
        assert bench.session.intents == [DraftTask("/fix it", seen=True)]
        await bench.answer(TaskDrafted(DRAFT))
        assert bench.screen.name == "draft"


async def test_a_command_comes_before_a_prompt_of_its_name() -> None:
    async with driving(with_prompts(ScriptedSession(*runs.up_to_commit()))) as bench:
        await bench.press(":", *"/undo")
        assert "a prompt of that name" not in bench.text()
        await bench.press("enter")
        assert "Undo the diff of step" in bench.text()


async def test_a_message_from_a_prompt_is_shown_before_it_is_sent() -> None:
    session = with_prompts(ScriptedSession(*runs.opening(), *runs.started()))
    async with driving(session, SMALL) as bench:
        await bench.press(":", *"/fix it", "enter")
        assert bench.session.intents == []
        assert area(bench).text == "Fix it in @shop/cart.py.\nAt once."
        assert "from memory/commands/fix.md; Enter sends it" in bench.text()
        await bench.press("down", "end", "!", "enter")
        assert bench.session.intents[-1:] == [SayToModel("Fix it in @shop/cart.py.\nAt once.!")]


@pytest.mark.parametrize("words", ["/etc/hosts is read twice", "-x foo", 'a: "b" #c', "[bold]x[/] y", "--yes do it"])
async def test_odd_words_are_words(words: str) -> None:
    async with driving(idle()) as bench:
        await bench.press(":")
        area(bench).text = words
        await bench.press("enter")
        assert bench.session.intents == [DraftTask(words, seen=True)]


async def test_a_paste_of_100_kb_is_left_out_and_said() -> None:
    async with driving(idle(), SMALL) as bench:
        await bench.press(":", *"fix ")
        area(bench).post_message(events.Paste("x" * 100_000))
        await bench.idle()
        assert area(bench).text == "fix "
        assert "100,000 characters were pasted" in bench.text()


async def test_the_words_of_a_closed_line_are_offered_again_and_typed_over() -> None:
    async with driving(idle()) as bench:
        await bench.press(":", *"fix it", "escape", ":")
        assert area(bench).text == "fix it"
        await bench.press("n", "escape", ":")
        assert area(bench).text == "n"
