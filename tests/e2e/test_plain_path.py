"""The plain path of a task, from its start to the merge, in keys: real server, git and tests behind the real screen."""

import os
from pathlib import Path

import pytest

from agent_workbench.adapters.demo.scripted_answers import SCRIPTS, T1_AT_ONCE, T1_FINISH, T1_READ
from agent_workbench.api.demo import write_demo
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.session_request import SessionRequest
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.environment import AppEnvironment
from tests.e2e.keyboard import APPROVE, SEND, START, Keyboard
from tests.fakes.scripted_session import FakeClock
from tests.tui.driver import SMALL

pytestmark = pytest.mark.slow

MOST_KEYS = 6
BASELINE = DIFF = COMMIT = MERGE = APPROVE


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_plain_path_from_start_to_merge_takes_few_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setitem(SCRIPTS, "T-1", (T1_READ, T1_AT_ONCE, T1_FINISH))
    repo, clock = tmp_path / "shop", FakeClock()
    host = LocalSessionHost(await write_demo(repo, Invocation(repo, {**os.environ}, {}, unconfined=True)))
    app = WorkbenchApp(host, SessionRequest(), clock=clock, first_run=False, environment=AppEnvironment(None))
    async with app.run_test(size=size) as pilot:
        keyboard = Keyboard(app, pilot, clock)
        assert await keyboard.merge() == [START, BASELINE, SEND, DIFF, COMMIT, MERGE]
        assert keyboard.scrolled == 0, "commit and merge are on one screen"
        # The second task's diff is longer than the screen, and all of it has to be seen.
        assert len(await keyboard.merge()) <= MOST_KEYS
        assert keyboard.scrolled > 0
        await app.leave("done")
    await host.join()
