"""Commands of tasks and the key that signs for this machine: they can neither read nor use it."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.bootstrap.commands import KEYS, command_shell, held_credentials
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import SandboxSettings, Settings
from agent_workbench.core.settings.extensions import InfrastructureSettings
from agent_workbench.core.settings.worker import DatabaseSettings
from agent_workbench.system.user_dirs import state_dir
from tests.sandbox import USUAL_PATH

ENVIRONMENT = {"PATH": USUAL_PATH}


def make_key(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    state_dir().mkdir(parents=True)
    return folder


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """The socket of an ssh-agent with a key."""
    socket = tmp_path / "agent.sock"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        key = make_key(tmp_path / "in-agent")
        subprocess.run(["ssh-add", "-q", key], env={**ENVIRONMENT, "SSH_AUTH_SOCK": str(socket)}, check=True)
        yield socket
        process.kill()


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize("network", [False, True])
async def test_a_confined_command_reads_and_uses_no_key(
    folder: Path, tmp_path: Path, agent: Path, network: bool
) -> None:
    configured, generated = make_key(tmp_path / "elsewhere" / "id"), make_key(state_dir() / KEYS / "signing_key")
    database = DatabaseSettings(url_env="AGENT_DATABASE_URL", signing_key=str(configured))
    settings = Settings(database=database, sandbox=SandboxSettings(network=network))
    environ = {**ENVIRONMENT, "SSH_AUTH_SOCK": str(agent), "AGENT_DATABASE_URL": "postgresql://u:secret@h/db"}
    shell = await asyncio.to_thread(command_shell, folder, settings, Invocation(folder, environ, {}))
    tries = [
        f"grep -l PRIVATE {path}; ssh-keygen -Y sign -n x -f {path} <{__file__}" for path in (configured, generated)
    ]
    tries += [f"SSH_AUTH_SOCK={agent} ssh-add -l", f"ls {state_dir() / KEYS}", "env | grep -e SSH_ -e DATABASE"]
    seen = (str(tmp_path / "elsewhere"), str(state_dir()), str(tmp_path))
    outcome = await shell.run(Command("; ".join(tries), str(folder), 20, ENVIRONMENT, readable=seen), lambda _: None)
    for leak in (
        "elsewhere/id\n",
        "keys/signing_key\n",
        "BEGIN SSH SIGNATURE",
        "ED25519)",
        "SSH_AUTH_SOCK=",
        "DATABASE_URL=",
    ):
        assert leak not in outcome.output
    assert "No such file" in outcome.output


@pytest.mark.usefixtures("needs_sandbox")
async def test_a_key_made_while_a_command_runs_is_hidden_from_it(folder: Path) -> None:
    shell = await asyncio.to_thread(command_shell, folder, Settings(), Invocation(folder, ENVIRONMENT, {}))
    key = state_dir() / KEYS / "signing_key"

    ready = asyncio.Event()
    line = f"echo ready; while ! test -e go; do sleep 0.02; done; cat {key} && echo leaked"
    command = Command(line, str(folder), 20, ENVIRONMENT, readable=(str(state_dir()),))
    running = asyncio.create_task(shell.run(command, lambda text: ready.set() if "ready" in text else None))
    await ready.wait()
    await asyncio.to_thread(make_key, key)
    await asyncio.to_thread((folder / "go").touch)
    outcome = await running
    assert await asyncio.to_thread(key.exists)
    assert "leaked" not in outcome.output
    assert "No such file" in outcome.output


def test_a_worker_that_signs_holds_a_credential(folder: Path) -> None:
    where = Invocation(folder, ENVIRONMENT, {})
    assert held_credentials(Settings(), where) == ()
    assert held_credentials(Settings(database=DatabaseSettings("URL")), where) == ("the signing key",)


@pytest.mark.usefixtures("needs_sandbox")
async def test_a_key_for_playbooks_is_seen_by_their_runs_alone(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "elsewhere" / "deploy"
    key.parent.mkdir()
    key.write_text("planted\n")
    settings = Settings(infrastructure=InfrastructureSettings(ssh_keys=("~/elsewhere/deploy",)))
    invocation = Invocation(folder, {**ENVIRONMENT, "HOME": str(tmp_path)}, {})
    shell = await asyncio.to_thread(command_shell, folder, settings, invocation)
    command = Command(f"cat {key}", str(folder), 20, ENVIRONMENT, readable=(str(tmp_path),))
    assert "planted" not in (await shell.run(command, lambda _: None)).output
    assert (await shell.run(replace(command, keys=(str(key),)), lambda _: None)).output == "planted\n"
