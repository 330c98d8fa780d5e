"""The sessions of one window, without a window."""

import gc
import os
import weakref
from pathlib import Path

import pytest

from agent_workbench.api import session_host as calls
from agent_workbench.api.session_host import Lives
from agent_workbench.core.errors import RepoError
from agent_workbench.core.invocation import Place
from agent_workbench.engine.session.preflight import Preflight, PreflightSteps


class Left(Preflight):
    """A session that was left before there was any."""

    def __init__(self) -> None:
        super().__init__(self._nowhere)

    async def run(self) -> None:
        """End at once."""

    async def _nowhere(self) -> PreflightSteps:
        raise AssertionError("nobody looks for it")


async def test_one_that_was_left_is_let_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calls, "terminal_session", lambda *_: Left())
    place = Place(tmp_path, os.environ, {})
    lives = Lives(place)
    session = weakref.ref(lives.begin(place))
    lives.stands.set()
    await lives.ended()
    gc.collect()
    assert session() is None
    lives.check()


async def test_what_kept_all_of_them_from_being_opened_is_raised_at_the_end(tmp_path: Path) -> None:
    place = Place(tmp_path, os.environ, {})
    lives = Lives(place)
    lives.begin(place)
    lives.stands.set()
    await lives.ended()
    with pytest.raises(RepoError):
        lives.check()
