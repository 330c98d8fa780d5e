"""The first prompt of a task before it is sent: what is shown, dropped, pinned and added, and the key that sends it."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import ActionProposed, ChunkDropped, PauseChanged
from agent_workbench.core.intents import ChooseSkill, DropChunk, PauseTask, PinChunk, PreviewPrompt
from agent_workbench.core.outcomes import Refused
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, Driver, driving
from tests.tui.scenes import Answering

CART, TEST = (chunk.place for chunk in runs.retrieved()[0].chunks)
SENT = PauseTask(paused=False)


def acts(bench: Driver) -> list[object]:
    return [intent for intent in bench.session.intents if not isinstance(intent, PreviewPrompt)]


async def test_it_opens_and_shows_all_parts_and_enter_sends_it() -> None:
    async with driving(Answering(*runs.up_to_preview()), SMALL) as bench:
        text = bench.text()
        for shown in (
            "what is sent first",
            "python-style",
            "scratchpad",
            CART,
            "test_cart.py:12-13",
            "957",
            "about 3.1 s to read",
        ):
            assert shown in text, shown
        assert "send: Enter │ pin: p │ drop: x │ add: @" in text
        await bench.press("enter")
        assert (acts(bench), "too quick" in bench.text()) == ([], True), "a key that came before it was seen"
        await bench.look()
        await bench.press("enter")
        assert acts(bench) == [SENT]
        assert bench.screen is bench.app.workbench


async def test_pieces_are_dropped_and_pinned_and_the_prompt_is_counted_again() -> None:
    async with driving(Answering(*runs.up_to_preview()), SMALL) as bench:
        await bench.press("x")
        assert acts(bench) == [DropChunk(CART)]
        await bench.record(ChunkDropped(CART))
        assert "910" in bench.text()
        assert "✗ code shop/cart.py" in bench.text()
        await bench.press("end", "p")
        assert acts(bench)[-1] == PinChunk(CART)


async def test_skills_are_shown_with_their_reason_dropped_and_added() -> None:
    async with driving(Answering(*runs.up_to_preview()), LARGE) as bench:
        text = bench.text()
        assert "skill python-style · python, refactor" in text
        assert "skill git-workflow · left out: 357 tokens" in text
        await bench.press("home", "down")
        assert "drop: x" in bench.text()
        await bench.press("x", "p")
        assert acts(bench) == [ChooseSkill("python-style", chosen=False), ChooseSkill("python-style")]
        await bench.press("end")
        assert "add: p" in bench.text()
        await bench.press("x")
        assert len(acts(bench)) == 2, "what is left out cannot be dropped"
        await bench.press("p")
        assert acts(bench)[-1] == ChooseSkill("git-workflow")


async def test_the_code_pane_shows_the_skills_of_the_prompt() -> None:
    async with driving(Answering(*runs.up_to_preview()), LARGE) as bench:
        await bench.press("escape", "5", "z")
        text = bench.text()
        for shown in (
            "1 skill",
            "● skill python-style",
            "python, refactor",
            "○ skill git-workflow",
            "left out: 357 tokens",
        ):
            assert shown in text, shown
        await bench.press("home", "x", "down", "p")
        assert acts(bench) == [ChooseSkill("python-style", chosen=False), ChooseSkill("git-workflow")]
        await bench.press("up", "enter")
        assert "Types everywhere." in bench.text()


async def test_other_code_is_added_from_it() -> None:
    async with driving(Answering(*runs.up_to_preview()), SMALL) as bench:
        await bench.press("@")
        assert bench.screen.name == "find"
        await bench.press("escape")
        assert bench.screen.name == "receipt"


async def test_once_closed_it_stays_closed_and_the_bar_sends() -> None:
    async with driving(Answering(*runs.up_to_preview()), SMALL) as bench:
        await bench.press("escape")
        assert bench.screen is bench.app.workbench
        await bench.record(ChunkDropped(CART))
        assert bench.screen is bench.app.workbench
        assert "T-1, before its first prompt" in bench.text()
        assert "send: Enter" in bench.text()
        await bench.press("c")
        assert "what is sent first" in bench.text()
        await bench.press("escape", "0", "enter")
        assert acts(bench) == [SENT]


async def test_a_dialog_that_is_open_is_not_covered() -> None:
    before = runs.up_to_preview()
    async with driving(Answering(*before[:-1]), SMALL) as bench:
        await bench.press("?")
        await bench.record(before[-1])
        assert bench.screen.name == "help"
        await bench.press("escape")
        assert "send: Enter" in bench.text()


async def test_a_model_that_cannot_be_asked_is_told_and_its_trouble_can_be_met() -> None:
    async with driving(ScriptedSession(*runs.up_to_preview()), SMALL) as bench:
        assert "counting its tokens" in bench.text()
        await bench.look()
        await bench.press("enter")
        assert acts(bench) == []
        await bench.answer(Refused("the server at http://127.0.0.1:1 is gone"))
        assert "is gone" in bench.text()
        await bench.look()
        await bench.press("enter")
        assert acts(bench) == [SENT]


@pytest.mark.parametrize("replayed", [True, False])
async def test_neither_a_replay_nor_a_session_that_does_not_review_opens_it(*, replayed: bool) -> None:
    events = runs.up_to_preview()
    session = Answering(*events) if replayed else Answering(*runs.opening(), *events[len(runs.opening()) :])
    async with driving(session.as_replay() if replayed else session, SMALL) as bench:
        assert bench.screen is bench.app.workbench
        assert acts(bench) == []


async def test_it_becomes_the_receipt_of_what_was_sent() -> None:
    step = runs.read_step()
    async with driving(Answering(*runs.up_to_preview()), SMALL) as bench:
        await bench.record(PauseChanged(paused=False), *step)
        assert "prompt 1 of 1" in bench.text()
        await bench.press("enter")
        assert "this prompt was sent before" in bench.text()
        assert acts(bench) == []


async def test_commit_and_merge_fold_what_was_approved_and_unfold_it_on_a_key() -> None:
    async with driving(ScriptedSession(*runs.up_to_commit()), SMALL) as bench:
        assert "1 file exactly as you approved it: folded" in bench.text()
        assert "line.cents * line.quantity" not in bench.text()
        await bench.look()
        await bench.press("3", "enter")
        assert "line.cents * line.quantity" in bench.text()
        await bench.press("enter")
        assert "line.cents * line.quantity" not in bench.text()
        await bench.look()
        await bench.press("0", "a")
        assert len(acts(bench)) == 1, "one key, for everything that has to be seen is on the screen"


async def test_a_merge_that_changes_a_file_otherwise_is_marked_and_has_to_be_seen() -> None:
    changed = replace(runs.merge(), reviewed=())
    async with driving(ScriptedSession(*runs.up_to_done(), ActionProposed(changed)), SMALL) as bench:
        assert "1 file you did not approve exactly so before: shown in full" in bench.text()
        await bench.look()
        assert "look twice" in bench.text()
        await bench.press("a")
        assert "line.cents * line.quantity" in bench.text()
        await bench.look()
        await bench.press("a")
        assert len(acts(bench)) == 1
