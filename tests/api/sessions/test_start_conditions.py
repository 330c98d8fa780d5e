"""Start of a worker: without a sandbox only if told, and then without credentials that its commands could read."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.shell import shell as shell_module
from agent_workbench.adapters.shell.sandbox import Sandbox, no_sandbox
from agent_workbench.api.sessions.session_opening import check_worker_start
from agent_workbench.bootstrap.repo_context import RepoContext, find_repo
from agent_workbench.core.errors import ShellError
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import SandboxSettings, Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings
from tests.adapters.git.user import make_repo

BARE = no_sandbox("bubblewrap is not installed")
HOLDS = Sandbox(SandboxFacts("bwrap", holds=True, network=False), "/usr/bin/bwrap")
LEAKS = Sandbox(SandboxFacts("bwrap", holds=False, network=False, why="the filter was refused"), "/usr/bin/bwrap")
OTHER = Sandbox(SandboxFacts("user", holds=False, network=True, why="they run as the user x"))
TOKEN = {"GITEA_TOKEN": "planted0123456789"}
TOLD = Settings(sandbox=SandboxSettings(unconfined=True))
KEY = "the key of the model's server"


async def started(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: Sandbox,
    environ: dict[str, str],
    settings: Settings,
    *,
    unconfined: bool = False,
    jobs: int = 1,
) -> str:
    """Return the kind of confinement, or the text of the refusal."""

    async def find(*_: object) -> Sandbox:
        return found

    monkeypatch.setattr(shell_module, "find_sandbox", find)
    user = make_repo(folder / "repo", {"a": "a\n"})
    invocation = Invocation(Path(user.root), {"HOME": str(folder), **environ}, {}, unconfined=unconfined)
    repo: RepoContext = await find_repo(invocation)
    try:
        return (await check_worker_start(repo, settings, jobs)).kind
    except ShellError as error:
        return f"{error} | {error.advice}"


@pytest.mark.parametrize("found", [BARE, LEAKS], ids=["none", "leaks"])
async def test_it_does_not_start_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Sandbox
) -> None:
    said = await started(tmp_path, monkeypatch, found, {}, Settings())
    assert found.facts.why in said
    assert "say --unconfined" in said


@pytest.mark.parametrize(
    ("found", "settings", "unconfined"),
    [(HOLDS, Settings(), False), (LEAKS, TOLD, False), (OTHER, TOLD, False), (OTHER, Settings(), True)],
)
async def test_credentials_that_commands_cannot_read_are_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Sandbox, settings: Settings, *, unconfined: bool
) -> None:
    assert await started(tmp_path, monkeypatch, found, TOKEN, settings, unconfined=unconfined) == found.facts.kind


@pytest.mark.parametrize(
    ("environ", "settings", "named"),
    [
        (TOKEN, TOLD, "GITEA_TOKEN"),
        ({"MINE": "plain-words"}, replace(TOLD, model=ModelSettings(url="http://x", api_key_env="MINE")), "MINE"),
        ({"PROXY": "http://ada:hunter2hunter2@proxy"}, TOLD, "PROXY"),
        ({}, replace(TOLD, model=ModelSettings(path="/m.gguf")), KEY),
        ({}, replace(TOLD, endpoints=(("a", EndpointSettings(path="/m.gguf")),)), KEY),
        ({f"T{n}_TOKEN": f"planted{n}0123456789" for n in range(9)}, TOLD, "T4_TOKEN and 4 more"),
    ],
)
async def test_unconfined_and_with_credentials_it_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], settings: Settings, named: str
) -> None:
    said = await started(tmp_path, monkeypatch, BARE, environ, settings)
    assert "could read in /proc: " in said
    assert f"{named} |" in said
    assert "AGENT_SANDBOX__USER" in said
    assert not [value for value in environ.values() if value in said]


async def test_unconfined_and_without_credentials_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await started(tmp_path, monkeypatch, BARE, {"EMPTY_TOKEN": ""}, TOLD) == "none"


@pytest.mark.parametrize(("found", "refused"), [(OTHER, True), (HOLDS, False), (BARE, False)])
async def test_tasks_at_the_same_time_do_not_share_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Sandbox, *, refused: bool
) -> None:
    said = await started(tmp_path, monkeypatch, found, {}, TOLD, jobs=2)
    assert ("--jobs 1" in said) is refused
