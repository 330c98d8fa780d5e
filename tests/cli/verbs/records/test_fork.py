"""What a fork would go on from, as the screen asks for it before there is one."""

import os
from pathlib import Path

import pytest

from agent_workbench.api.repo_sessions import RepoSessions
from agent_workbench.api.session_fork import GONE
from agent_workbench.core.errors import WorkspaceError
from agent_workbench.core.session_request import Invocation
from agent_workbench.system.user_dirs import state_dir
from tests.adapters.git.conftest import home
from tests.adapters.git.user import User
from tests.adapters.journal.journals import SESSION, started, write_quickly
from tests.fakes import runs

__all__ = ["home"]


async def test_where_git_has_the_files_no_more_it_says_so_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> None:
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    user.write("a", "a\n")
    user.commit("Start")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    session = user.root / "memory" / "sessions" / SESSION
    write_quickly(session, (started(SESSION), *runs.up_to_first_diff()[1:]))
    notes = state_dir() / "sessions"
    notes.mkdir(parents=True)
    (notes / SESSION).write_text(str(session.resolve()))
    with pytest.raises(WorkspaceError, match=GONE):
        await RepoSessions(Invocation(user.root, os.environ, {})).foresee_fork(SESSION, None)
