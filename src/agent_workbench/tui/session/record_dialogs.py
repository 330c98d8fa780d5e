"""What the workbench shows and asks about other sessions of the repo."""

from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import GoToEvent
from agent_workbench.core.session_request import SessionRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from agent_workbench.core.history.comparison import Comparison
    from agent_workbench.tui.screens.recording_search import Chosen
    from agent_workbench.tui.session.session_tab import SessionTab

NO_PICTURE = "a picture cannot be kept here; `agent sessions export --format svg` makes one"
NONE_HERE = "the sessions of this repo are not at hand here; `agent sessions` lists them"


def show_sessions(tab: "SessionTab") -> None:
    """Show the repo's sessions; the one that is chosen is shown in a tab beside this one."""
    from agent_workbench.tui.screens.sessions import SessionsScreen

    if tab.past is None:
        tab.tell(NONE_HERE, "warning")
        return
    here = tab.update_shown.state.session if tab.update_shown is not None else SessionId("")

    async def go(request: SessionRequest | None) -> None:
        if request is not None:
            await tab.app.tabs.open(request)

    tab.push_screen(SessionsScreen(tab.keymap, tab.past, here, partial(fork, tab), partial(show_comparison, tab)), go)


def show_comparison(tab: "SessionTab", comparison: "Comparison") -> None:
    """Show two sessions beside each other."""
    from agent_workbench.tui.screens.comparison import ComparisonScreen

    tab.push_screen(ComparisonScreen(comparison, tab.keymap))


def keep_picture(tab: "SessionTab") -> None:
    """Keep a picture of the screen as it is now; say where."""
    from agent_workbench.tui.pictures.drawing import screen_lines
    from agent_workbench.tui.pictures.svg import to_svg

    update = tab.update_shown
    if tab.past is None or update is None:
        tab.tell(NO_PICTURE, "warning")
        return
    state = update.state
    picture = to_svg(screen_lines(tab.app), f"session {state.session} at event {state.seq}, {state.time[:19]}Z")
    tab.run_worker(_keep(tab, tab.past.keep_picture(state.session, state.seq, picture)), group="picture")


async def _keep(tab: "SessionTab", keeping: "Coroutine[None, None, str]") -> None:
    try:
        tab.tell(f"the picture is in {await keeping}")
    except WorkbenchError as error:
        tab.tell(_spoken(error), "error")


def search_recording(tab: "SessionTab", take_matches: "Callable[[str, tuple[int, ...]], None]") -> None:
    """Let the user look for words in the recording that is looked at; a match that is chosen is gone to."""
    from agent_workbench.tui.screens.recording_search import SearchScreen

    update = tab.update_shown
    # A key that was pressed while the screen was on its way may want it a second time.
    if update is None or update.live.replay is None or tab.screen is not tab.workbench:
        return

    async def go(chosen: "Chosen | None") -> None:
        if chosen is not None:
            take_matches(chosen.asked, chosen.seqs)
            await tab.want(GoToEvent(chosen.seq))

    tab.push_screen(SearchScreen(tab.keymap, update.live.replay), go)


def fork_here(tab: "SessionTab") -> None:
    """Ask about a fork of the recording that is looked at, from the event it stands at."""
    update = tab.update_shown
    if update is not None and update.live.replay is not None:
        fork(tab, update.state.session, update.live.replay.seq)


def fork(tab: "SessionTab", session: SessionId, at: int | None = None) -> None:
    """Ask whether a session shall be forked after event `at` (None: its last), with what the fork goes on from."""
    tab.run_worker(_ask(tab, session, at), group="fork", exclusive=True)


async def _ask(tab: "SessionTab", session: SessionId, at: int | None) -> None:
    from agent_workbench.tui.dialogs.confirm import ConfirmScreen

    if tab.past is None:
        tab.tell(NONE_HERE, "warning")
        return
    try:
        lines = await tab.past.foresee_fork(session, at)
    except WorkbenchError as error:
        tab.tell(_spoken(error), "warning")
        return

    def answer(yes: bool | None) -> None:
        if yes:
            tab.run_worker(_fork(tab, session, at), group="forking")

    tab.push_screen(ConfirmScreen("Fork this session?", lines, tab.clock, yes="fork it and go on there"), answer)


async def _fork(tab: "SessionTab", session: SessionId, at: int | None) -> None:
    if tab.past is None:
        return
    try:
        child = await tab.past.fork(session, at)
    except WorkbenchError as error:
        tab.tell(_spoken(error), "error")
        return
    await tab.app.tabs.open(SessionRequest(session=child))


def _spoken(error: WorkbenchError) -> str:
    return "\n".join(filter(None, (str(error), error.advice)))
