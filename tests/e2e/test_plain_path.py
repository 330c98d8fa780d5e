"""The plain path of a task, from its start to the merge, in keys: real server, git and tests behind the real screen."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.demo import SCRIPTS, T1_AT_ONCE, T1_FINISH, T1_READ
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.set_up import write_demo
from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.session_request import Invocation, SessionRequest
from agent_workbench.tui.app import WorkbenchApp
from agent_workbench.tui.session.window import AppEnvironment
from tests.e2e.keyboard import APPROVE, SEND, START, Keyboard
from tests.fakes.scripted_session import FakeClock
from tests.tui.driver import SMALL

pytestmark = pytest.mark.slow

MOST_KEYS = 6
BASELINE = DIFF = COMMIT = MERGE = APPROVE
ENTER_WORDS = ENTER_TASK = "enter"
TESTS = f"test_command: {sys.executable} -m unittest tests/test_cart.py\n"
WORDS = "the cart's total must count quantities"


@asynccontextmanager
async def in_the_demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], settings: str = "", *, unconfined: bool
) -> AsyncIterator[Keyboard]:
    """Open the workbench in the demo's repository, with more settings, for a user who is known already."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    repo, clock = folder / "shop", FakeClock()
    invocation = await write_demo(repo, Invocation(repo, {**os.environ}, {}, unconfined=unconfined))
    if settings:
        with (repo / ".agent.yml").open("a") as file:
            file.write(settings)
        trust = await (await find_repo(invocation)).trust()
        assert await trust.question()
        await trust.accept()
    host = LocalSessionHost(invocation)
    app = WorkbenchApp(host, SessionRequest(), clock=clock, first_run=False, environment=AppEnvironment(None))
    async with app.run_test(size=size) as pilot:
        yield Keyboard(app, pilot, clock)
        await app.leave("done")
    await host.join()


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_plain_path_from_start_to_merge_takes_few_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setitem(SCRIPTS, "T-1", (T1_READ, T1_AT_ONCE, T1_FINISH))
    async with in_the_demo(tmp_path, monkeypatch, size, unconfined=True) as keyboard:
        assert await keyboard.merge() == [START, BASELINE, SEND, DIFF, COMMIT, MERGE]
        assert keyboard.scrolled == 0, "commit and merge are on one screen"
        # The second task's diff is longer than the screen, and all of it has to be seen.
        assert len(await keyboard.merge()) <= MOST_KEYS
        assert keyboard.scrolled > 0


@pytest.mark.usefixtures("needs_sandbox")
async def test_the_path_from_words_to_the_merge_takes_few_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCRIPTS, "T-3", (T1_READ, T1_AT_ONCE, T1_FINISH))
    async with in_the_demo(tmp_path, monkeypatch, SMALL, TESTS, unconfined=False) as keyboard:
        await keyboard.say(WORDS)
        pressed = await keyboard.merge()
    keys = [ENTER_WORDS, *pressed]
    assert keys == [ENTER_WORDS, ENTER_TASK, SEND, DIFF, COMMIT, MERGE]
    assert len(keys) <= MOST_KEYS
