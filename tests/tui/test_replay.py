"""A recording in the panes: jumps, the timeline under the mouse, search, and the receipt that goes along."""

import pytest

from agent_workbench.api.sessions.session_opening import replayed_session
from agent_workbench.core.events import PromptBuilt, Recorded
from agent_workbench.core.history.replay_marks import MarkKind
from agent_workbench.core.intents import ChangeReplaySpeed, GoToEvent, JumpReplay
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.screens.review import MatchList
from agent_workbench.tui.widgets.replay_bar import ReplayBar
from agent_workbench.views.timeline import seq_at
from tests.fakes import runs
from tests.fakes.scripted_session import FakeClock, ScriptedHost, ScriptedSession
from tests.tui.driver import MIDDLE, SMALL, driving

EVENTS = tuple(
    Recorded(seq, f"2026-11-20T10:15:{seq % 60:02}.000000Z", event) for seq, event in enumerate(runs.up_to_done())
)


async def test_keys_jump_by_kind_and_the_timeline_is_clicked() -> None:
    async with driving(ScriptedSession(*runs.up_to_done()).as_replay(), MIDDLE) as bench:
        await bench.replay.jump("d", "D", "e", "v", "w", "p", "T", "plus", "<")
        kinds = (MarkKind.FAILURE, MarkKind.DECISION, MarkKind.WORD, MarkKind.PROMPT)
        assert bench.session.intents == [
            *(JumpReplay(MarkKind.DIFF), JumpReplay(MarkKind.DIFF, forward=False)),
            *(JumpReplay(kind) for kind in kinds),
            *(
                JumpReplay(MarkKind.TASK, forward=False),
                ChangeReplaySpeed(faster=True),
                ChangeReplaySpeed(faster=False),
            ),
        ]
        bench.session.intents.clear()
        assert await bench.replay.seek(12) == GoToEvent(seq_at(12, len(EVENTS), MIDDLE[0] - 2))
        bench.session.intents.clear()
        await bench.pilot.mouse_down(ReplayBar, offset=(1, 2))
        await bench.pilot.hover(ReplayBar, offset=(60, 1))
        await bench.pilot.mouse_up(ReplayBar, offset=(60, 2))
        await bench.pilot.hover(ReplayBar, offset=(90, 2))
        clicked, *dragged = bench.session.intents
        assert clicked == GoToEvent(0)
        middle = GoToEvent(seq_at(59, len(EVENTS), MIDDLE[0] - 2))
        assert set(dragged) == {middle}


async def test_a_new_task_in_a_recording_opens_a_session_for_it() -> None:
    async with driving(ScriptedSession(*runs.up_to_done()).as_replay(), others=[ScriptedSession()]) as bench:
        await bench.press("1", "n")
        assert bench.opened == [SessionRequest(OpenMode.NEW)]
        assert bench.session.intents == []


@pytest.mark.slow
async def test_a_search_goes_to_what_it_finds_and_the_receipt_follows() -> None:
    session = await replayed_session(EVENTS, at=6)
    app = WorkbenchApp(ScriptedHost(session), SessionRequest(), clock=FakeClock())
    async with app.run_test(size=SMALL) as pilot:

        async def press(*keys: str) -> int:
            await pilot.press(*keys)
            await pilot.pause()
            await pilot.pause()
            assert app.update_shown is not None
            assert app.update_shown.live.replay is not None
            return app.update_shown.live.replay.seq

        await pilot.pause()
        await press("slash", *"line.cents")
        found = app.screen.query_one(MatchList)
        assert len(found.entries) > 1
        first = await press("enter")
        assert "line.cents" in str(EVENTS[first].event)
        second = await press("n")
        assert second > first
        assert await press("N") == first

        prompts = [each.seq for each in EVENTS if isinstance(each.event, PromptBuilt)]
        assert await press("home", "p", "p") == prompts[1]
        await press("c")
        assert "prompt 2 of 2" in str(app.screen.query_one(".frame").border_title)
        await press("escape")
        assert await press("P") == prompts[0]
        await press("c")
        assert "prompt 1 of 1" in str(app.screen.query_one(".frame").border_title)


async def test_a_search_that_is_wanted_twice_at_once_is_opened_once() -> None:
    async with driving(ScriptedSession(*runs.up_to_done()).as_replay(), SMALL) as bench:
        bar = bench.app.workbench.query_one(ReplayBar)
        for _ in range(2):
            bar.action_search_record()
        await bench.idle()
        assert [screen.name for screen in bench.app.screen_stack].count("search") == 1
