"""In command: Esc goes back and stops, Shift-Tab changes the mode, Ctrl-C leaves one tab, time and output are shown."""

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import ActionDecided, ActionProposed, ActionStarted, ModeChanged, PauseChanged
from agent_workbench.core.intents import (
    ChangeMode,
    Leave,
    PauseTask,
    PlayReplay,
    SayToModel,
    StopAction,
    StopAnswer,
)
from agent_workbench.core.live import LeftRunning, Live, Running, Streaming
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.settings import ApprovalMode, Permission
from agent_workbench.views.gate.gate_bar import GateMode, view_gate
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, SMALL, driving
from tests.tui.test_gate import with_diff

THINKING = Live("thinking", streaming=Streaming("Thought: look\nat the cart", tokens=6, seconds=2.0))
CHECKING = Live("running 1 check", seconds=4.0, running=Running(runs.PYTEST, "collected 3 items\ntest_a PASSED\n", 4.0))
ASK, EDITS, UNTIL_DONE = ApprovalMode


def answering() -> ScriptedSession:
    """Return a session in which the model answers."""
    return ScriptedSession(*runs.up_to_reflexion()).show(THINKING)


def running(proposal: Proposal) -> ScriptedSession:
    """Return a session in which this proposal is being carried out."""
    session = ScriptedSession(*runs.up_to_reflexion())
    session.record(
        ActionProposed(proposal), ActionDecided(proposal.id, Verdict.APPROVE, "user"), ActionStarted(proposal.id)
    )
    return session.show(CHECKING)


def check() -> Proposal:
    return runs.checks("P-70", CheckPurpose.AFTER_DIFF)


async def test_esc_closes_a_dialog_then_goes_to_the_bar_then_stops_the_answer() -> None:
    session = answering()
    async with driving(session, SMALL) as bench:
        await bench.press("3", "question_mark")
        assert bench.screen.name == "help"
        await bench.press("escape")
        assert bench.diff.has_focus
        await bench.press("escape")
        assert bench.gate.has_focus
        assert session.intents == []
        assert "stop: Esc" in bench.text()
        await bench.press("escape")
        assert session.intents == [StopAnswer()]
        await bench.press(*"use decimals")
        assert session.intents == [StopAnswer()], "what is typed at once presses no key of the bar"
        await bench.press("enter")
        assert session.intents == [StopAnswer(), SayToModel("use decimals"), PauseTask(paused=False)]


async def test_enter_alone_continues_and_esc_stays_paused() -> None:
    session = answering()
    async with driving(session, SMALL) as bench:
        await bench.press("0", "escape", "enter")
        assert session.intents == [StopAnswer(), PauseTask(paused=False)]
        await bench.press("escape", "escape")
        assert bench.screen.name == "workbench"
        assert session.intents[2:] == [StopAnswer()]
        await bench.record(PauseChanged(paused=True))
        await bench.live(Live())
        assert view_gate(session.newest).mode is GateMode.PAUSED
        await bench.press("escape")
        assert "nothing runs" in bench.text()
        assert len(session.intents) == 3


@pytest.mark.parametrize("kind", [Permission.CHECK, Permission.COMMAND])
async def test_a_check_or_a_command_is_ended_by_the_second_esc(kind: Permission) -> None:
    proposal = check() if kind is Permission.CHECK else runs.proposed(kind, "run_command", "P-70", "make")
    session = running(proposal)
    async with driving(session, SMALL) as bench:
        await bench.press("0", "escape")
        assert "press again to end it" in bench.text()
        assert session.intents == []
        await bench.press("j", "escape")
        assert session.intents == [], "the two follow one another"
        await bench.press("escape")
        assert session.intents == [StopAction(proposal.id)]


async def test_a_second_esc_counts_for_the_action_that_was_shown() -> None:
    session = running(check())
    async with driving(session, SMALL) as bench:
        await bench.press("0", "escape")
        other = runs.checks("P-80", CheckPurpose.AFTER_DIFF)
        session.record(
            ActionProposed(other),
            ActionDecided(other.id, Verdict.APPROVE, "policy:check=auto"),
            ActionStarted(other.id),
        )
        await bench.idle()
        await bench.press("escape")
        assert session.intents == []
        assert "press again to end it" in bench.text()


async def test_a_commit_is_not_stopped() -> None:
    session = running(runs.commit())
    async with driving(session, SMALL) as bench:
        await bench.press("0", "escape", "escape", "escape")
        assert session.intents == []
        assert "nothing runs that can be stopped" in bench.text()


async def test_esc_at_a_gate_decides_nothing() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, SMALL) as bench:
        await bench.press("escape", "escape", "escape")
        assert session.intents == []
        assert bench.gate.has_focus


async def test_esc_stops_a_replay_that_plays() -> None:
    session = ScriptedSession(*runs.up_to_done()).as_replay(playing=True)
    async with driving(session, SMALL) as bench:
        await bench.press("1", "escape")
        assert session.intents == []
        await bench.press("escape")
        assert session.intents == [PlayReplay(playing=False)]


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_mode_is_always_shown_and_shift_tab_changes_it(size: tuple[int, int]) -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, size) as bench:
        for pane in "123450":
            await bench.press(pane)
            assert bench.text().splitlines()[-1].startswith(" ask │")
        await bench.press("3", "shift+tab")
        assert [each.mode for each in session.intents if isinstance(each, ChangeMode)] == [EDITS]
        assert bench.diff.has_focus
        await bench.record(ModeChanged(EDITS))
        assert bench.text().splitlines()[-1].startswith(" accept edits │")
        await bench.record(ModeChanged(UNTIL_DONE))
        assert bench.text().splitlines()[-1].startswith(" accept until done │")
        await bench.press("shift+tab")
        assert session.intents[-1] == ChangeMode(ASK)


async def test_a_diff_that_was_not_seen_in_full_is_left_to_no_mode() -> None:
    session = with_diff("--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,90 @@\n" + "+harmless\n" * 90)
    session.record(ModeChanged(EDITS))
    async with driving(session, SMALL) as bench:
        await bench.press("shift+tab")
        assert session.intents == [ChangeMode(UNTIL_DONE)]


@pytest.mark.parametrize(("key", "answer"), [("enter", UNTIL_DONE), ("escape", ASK)])
async def test_accept_until_done_asks_whether_it_begins_with_what_waits(key: str, answer: ApprovalMode) -> None:
    session = ScriptedSession(*runs.up_to_first_diff(), ModeChanged(EDITS))
    waiting = session.newest.state.waiting
    assert waiting is not None
    async with driving(session, LARGE) as bench:
        await bench.look()
        await bench.press("shift+tab")
        assert session.intents == []
        assert "It begins with the diff that waits" in bench.text()
        await bench.look()
        await bench.press(key)
        assert session.intents == [ChangeMode(answer, shown_sha(waiting) if answer is UNTIL_DONE else None)]


async def test_esc_at_the_bar_returns_to_ask_and_stops_what_runs() -> None:
    session = answering()
    session.record(ModeChanged(UNTIL_DONE))
    async with driving(session, SMALL) as bench:
        await bench.press("3", "escape")
        assert session.intents == []
        await bench.press("escape")
        assert session.intents == [ChangeMode(ASK), StopAnswer()]


async def test_shift_tab_in_a_dialog_is_the_dialogs() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, LARGE) as bench:
        await bench.look()
        await bench.press("r", "shift+tab")
        assert bench.screen.name == "reason"
        assert session.intents == []


async def test_a_recording_has_a_mode_that_cannot_be_changed() -> None:
    session = ScriptedSession(*runs.up_to_done(), ModeChanged(EDITS)).as_replay()
    async with driving(session, SMALL) as bench:
        assert bench.text().splitlines()[-1].startswith(" accept edits │")
        await bench.press("shift+tab")
        assert "this is a recording" in bench.text()
        assert session.intents == []


async def test_ctrl_c_leaves_this_tab_at_the_second_press_within_two_seconds() -> None:
    other = ScriptedSession(*runs.opening())
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, SMALL, others=[other]) as bench:
        await bench.press("ctrl+t", "ctrl+c")
        assert "Ctrl-C again within 2 s" in bench.text()
        bench.clock.advance(2.1)
        await bench.press("ctrl+c")
        assert other.intents == []
        bench.clock.advance(1.9)
        await bench.press("ctrl+c")
        await bench.until(lambda: len(bench.app.tabs.all) == 1)
        assert other.intents == [Leave()]
        assert session.intents == []
        assert bench.app.return_value is None


async def test_ctrl_c_in_text_copies_and_leaves_nothing() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, LARGE) as bench:
        await bench.look()
        await bench.press("r")
        field = bench.screen.query_one(Input)
        field.value = "off by one"
        field.selection = type(field.selection)(0, 3)
        await bench.press("ctrl+c", "ctrl+c")
        assert bench.app.clipboard == "off"
        await bench.press("escape")
        await bench.press("colon")
        await bench.press(*"word", "ctrl+c", "ctrl+c")
        assert session.intents == []


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("pane", ["0", "1", "2", "3"])
@pytest.mark.slow(quick=2)
async def test_time_and_last_line_are_shown_wherever_the_focus_is(size: tuple[int, int], pane: str) -> None:
    session = running(check())
    async with driving(session, size) as bench:
        await bench.press(pane)
        assert "4 s  test_a PASSED" in bench.text()
        await bench.live(Live("running 1 check", seconds=40.0, quiet_seconds=36.0, running=CHECKING.running))
        assert "40 s, no output for 36 s" in bench.text()
        await bench.live(Live("waiting for the model", seconds=31.0, quiet_seconds=31.0))
        assert "31 s, no output for 31 s" in bench.text()


async def test_an_answer_shows_its_time_and_last_line() -> None:
    async with driving(answering(), SMALL) as bench:
        assert "6 tokens, 2 s  at the cart" in bench.text()


async def test_output_controls_neither_bar_nor_terminal() -> None:
    hostile = "\x1b]52;c;aGk=\x07[@click=app.leave_anyway]x[/]\x1b[2J[bold]end\r"
    live = Live("running 1 check", running=Running(runs.PYTEST, hostile, 1.0))
    async with driving(ScriptedSession(*runs.up_to_reflexion()).show(live), LARGE) as bench:
        assert "\x1b" not in bench.text()
        assert "[bold]end" in bench.text()


async def test_output_that_runs_is_shown_without_its_colours() -> None:
    live = Live("running 1 check", running=Running(runs.PYTEST, "\x1b[31m\x1b[1mFAILED\x1b[0m test_a\x1b[K\x1b[3", 1.0))
    async with driving(ScriptedSession(*runs.up_to_reflexion()).show(live), LARGE) as bench:
        assert bench.text().count("FAILED test_a") == 3, "steps, output and bar"
        assert "␛" not in bench.text()


async def test_the_last_lines_of_a_command_left_running_are_shown_between_steps() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    async with driving(session, LARGE) as bench:
        await bench.live(Live(left_running=LeftRunning("npm run dev", "\x1b[32mready\x1b[0m\nGET /cart [/foo]\n")))
        assert bench.text().count("GET /cart [/foo]") == 2, "steps and output"
        assert bench.text().count("Left running") == 2
        await bench.live(replace(CHECKING, left_running=LeftRunning("npm run dev", "GET /\n")))
        assert bench.text().count("test_a PASSED") == 3, "what is waited for is in front"
        await bench.live(Live(left_running=LeftRunning("npm run dev", "GET /\n", "exit code 1")))
        assert bench.text().count("ended: exit code 1") == 2
        await bench.live(Live())
        assert "npm run dev" not in bench.text()


async def test_a_small_terminal_says_of_a_long_command_that_it_is_left_running() -> None:
    line = f"DATABASE=$TMPDIR/dev.db npm run dev -- {'--port 8123 ' * 9}&"
    proposed = runs.proposed(Permission.COMMAND, "run_command", "P-91", line)
    async with driving(ScriptedSession(*runs.opening(), *runs.started(), ActionProposed(proposed)), SMALL) as bench:
        assert "…  left running until the task ends" in bench.text()


async def test_in_a_small_terminal_the_pane_in_which_something_happens_is_in_front() -> None:
    session = ScriptedSession(*runs.opening(), *runs.started())
    async with driving(session, SMALL) as bench:
        front = bench.app.workbench.panes
        session.record(ActionProposed(runs.checks("P-4", CheckPurpose.BASELINE)))
        await bench.idle()
        assert front.front == "diff"
        session.record(*runs.approved(runs.checks("P-4", CheckPurpose.BASELINE)))
        await bench.live(CHECKING)
        assert front.front == "diff", "the checks run there"
        session.record(*runs.tested("P-4", CheckPurpose.BASELINE, good=False))
        await bench.live(Live("searching the code"))
        assert front.front == "steps", "their outcome is there"
        await bench.live(Live("waiting for the model"))
        assert front.front == "steps"
