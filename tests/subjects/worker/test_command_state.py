"""Commands of tasks and the state that workers share: a lock that a command held would stop every worker."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.bootstrap.commands import SHARED_STATE, command_shell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Settings
from agent_workbench.system.user_dirs import state_dir
from tests.sandbox import USUAL_PATH


@pytest.mark.usefixtures("needs_sandbox")
async def test_a_confined_command_reaches_no_lock_that_workers_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(Path(tmp_path, "state")))
    folder = tmp_path / "work"
    locks = [state_dir() / each / "lock" for each in SHARED_STATE]
    for lock in locks:
        lock.parent.mkdir(parents=True)
        lock.touch()
    folder.mkdir()
    invocation = Invocation(folder, {"PATH": USUAL_PATH}, {})
    shell = await asyncio.to_thread(command_shell, folder, Settings(), invocation)
    line = "; ".join(f"test -e {lock} && flock --nonblock {lock} echo held" for lock in locks)
    command = Command(line, str(folder), 20, {"PATH": USUAL_PATH}, readable=(str(state_dir()),))
    outcome = await shell.run(command, lambda _: None)
    assert "held" not in outcome.output
    assert outcome.exit_code
