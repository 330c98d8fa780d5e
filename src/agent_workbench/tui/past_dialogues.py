"""What the workbench shows and asks about other sessions of the repo."""

from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.intents import GoToEvent
from agent_workbench.core.sessions import Onward

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.screens.search import Chosen

NONE_HERE = "the sessions of this repo are not at hand here; `agent sessions` lists them"


def show_sessions(app: "WorkbenchApp") -> None:
    """Show the repo's sessions; the one that is chosen takes the place of the one that is shown."""
    from agent_workbench.tui.screens.sessions import SessionsScreen

    if app.past is None:
        app.tell(NONE_HERE, "warning")
        return
    here = app.update_shown.state.session if app.update_shown is not None else SessionId("")

    async def go(onward: Onward | None) -> None:
        if onward is not None:
            await go_on_with(app, onward)

    app.push_screen(SessionsScreen(app.keymap, app.past, here, partial(fork, app)), go)


def search_recording(app: "WorkbenchApp", take_matches: "Callable[[str, tuple[int, ...]], None]") -> None:
    """Let the user look for words in the recording that is looked at; a match that is chosen is gone to."""
    from agent_workbench.tui.screens.search import SearchScreen

    update = app.update_shown
    # A key that was pressed while the screen was on its way may want it a second time.
    if update is None or update.live.replay is None or app.screen is not app.workbench:
        return

    async def go(chosen: "Chosen | None") -> None:
        if chosen is not None:
            take_matches(chosen.asked, chosen.seqs)
            await app.want(GoToEvent(chosen.seq))

    app.push_screen(SearchScreen(app.keymap, update.live.replay), go)


async def go_on_with(app: "WorkbenchApp", onward: Onward) -> None:
    """Leave the session that is shown; whoever runs the app shows the one in `onward` next."""
    app.onward = onward
    await app.leave("another session was opened")


def fork_here(app: "WorkbenchApp") -> None:
    """Ask about a fork of the recording that is looked at, from the event it stands at."""
    update = app.update_shown
    if update is not None and update.live.replay is not None:
        fork(app, update.state.session, update.live.replay.seq)


def fork(app: "WorkbenchApp", session: SessionId, at: int | None = None) -> None:
    """Ask whether a session shall be forked after event `at` (None: its last), with what the fork goes on from."""
    app.run_worker(_ask(app, session, at), group="fork", exclusive=True)


async def _ask(app: "WorkbenchApp", session: SessionId, at: int | None) -> None:
    from agent_workbench.tui.screens.confirm import ConfirmScreen

    if app.past is None:
        app.tell(NONE_HERE, "warning")
        return
    try:
        lines = await app.past.foresee_fork(session, at)
    except WorkbenchError as error:
        app.tell(_spoken(error), "warning")
        return

    def answer(yes: bool | None) -> None:
        if yes:
            app.run_worker(_fork(app, session, at), group="forking")

    app.push_screen(ConfirmScreen("Fork this session?", lines, app.clock, yes="fork it and go on there"), answer)


async def _fork(app: "WorkbenchApp", session: SessionId, at: int | None) -> None:
    if app.past is None:
        return
    try:
        child = await app.past.fork(session, at)
    except WorkbenchError as error:
        app.tell(_spoken(error), "error")
        return
    await go_on_with(app, Onward(child))


def _spoken(error: WorkbenchError) -> str:
    return "\n".join(filter(None, (str(error), error.advice)))
