"""Commands as another user: they work, and read no credential of the workbench wherever one is planted."""

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_workbench.adapters.shell.command_user import find_user, hand_over
from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.errors import ConfigError, ShellError
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.system.processes import ProcessUser, spawn
from tests.adapters.shell.conftest import without_bwrap

OTHER = "nobody"
TOKEN = "ghp_planted0123456789planted"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="agent-user-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def other() -> ProcessUser:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("machine lacks: root on Linux, who can run commands as another user")
    return find_user(OTHER)


@pytest.fixture
def work(open_folder: Path, other: ProcessUser, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(open_folder / "state"))
    folder = open_folder / "work"
    folder.mkdir()
    (folder / "there.txt").write_text("before\n")
    return folder


async def run(line: str, folder: Path, user: str = OTHER) -> CommandOutcome:
    shell = SandboxedShell(SandboxSettings(user=user), "/nowhere", without_bwrap())
    command = Command(line, str(folder), 20, {"PATH": os.defpath}, private=True)
    return await shell.run(command, lambda _: None)


async def test_it_works_in_the_worktree_and_what_it_made_belongs_to_the_workbench_too(work: Path) -> None:
    outcome = await run("id -un; echo after > there.txt; mkdir sub; echo new > sub/new; touch $TMPDIR/x", work)
    assert (outcome.exit_code, outcome.output) == (0, f"{OTHER}\n")
    await asyncio.to_thread((work / "sub" / "new").write_text, "the workbench writes\n")
    assert (await run("cat there.txt; echo again >> sub/new; grep -c . sub/new", work)).output == "after\n2\n"


@contextmanager
def holder_of_token() -> Iterator[int]:
    """A process of the workbench's user with the token in its environment, memory and arguments of none."""
    code = "import os, sys; os.environ['GITEA_TOKEN']; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={"GITEA_TOKEN": TOKEN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def looks(holder: int, *files: Path) -> str:
    """Return a command that prints all it can read of its environment, of processes, and of these files."""
    each = "[ -O $p ] || cat $p/environ $p/cmdline $p/fd/*"
    more = f"cat {' '.join(map(str, files))}; head -c 100 /proc/{holder}/mem; cat /proc/{holder}/environ"
    return f"(env; set; for p in /proc/[0-9]*; do {each}; done; {more}) 2>/dev/null < /dev/null; echo done"


async def test_it_reads_no_credential_of_the_workbench(work: Path, open_folder: Path) -> None:
    private = open_folder / "token"
    os.close(os.open(private, os.O_WRONLY | os.O_CREAT, 0o600))
    await asyncio.to_thread(private.write_text, TOKEN)
    with holder_of_token() as holder:
        outcome = await run(looks(holder, private), work)
    assert outcome.output.endswith("done\n")
    assert TOKEN not in outcome.output


async def test_a_command_of_the_same_user_reads_it(tmp_path: Path) -> None:
    shell = SandboxedShell(SandboxSettings(), "/nowhere", without_bwrap())
    with holder_of_token() as holder:
        command = Command(f"cat /proc/{holder}/environ", str(tmp_path), 20, {"PATH": os.defpath})
        assert TOKEN in (await shell.run(command, lambda _: None)).output


@pytest.mark.usefixtures("needs_sandbox")
async def test_a_confined_command_reads_no_credential_either(tmp_path: Path) -> None:
    folder, secrets, env_file = tmp_path / "work", tmp_path / "secrets", tmp_path / ".env"
    for each in (folder, secrets):
        each.mkdir()
    for file in (secrets / "gitea", env_file):
        file.write_text(TOKEN)
    shell = SandboxedShell(SandboxSettings(), str(tmp_path), os.environ, hidden=(str(secrets), str(env_file)))
    with holder_of_token() as holder:
        command = Command(looks(holder, secrets / "gitea", env_file), str(folder), 20, {"PATH": os.defpath})
        outcome = await shell.run(command, lambda _: None)
    assert outcome.output.endswith("done\n")
    assert TOKEN not in outcome.output


async def test_nothing_leads_back_to_the_workbenchs_user(work: Path, open_folder: Path) -> None:
    await asyncio.to_thread(shutil.copy, "/usr/bin/id", open_folder / "id")
    os.chmod(open_folder / "id", 0o4755)  # noqa: PTH101 - pathlib looks first, which blocks
    outcome = await run(
        f"{open_folder}/id -u; id -G; grep -E 'Cap(Prm|Eff|Amb)|NoNewPrivs' /proc/self/status; kill {os.getpid()}", work
    )
    entry = pwd.getpwnam(OTHER)
    first, second, *rest = outcome.output.splitlines()
    assert (first, second) == (str(entry.pw_uid), str(entry.pw_gid))
    assert {line.split()[1] for line in rest[:4]} == {"0" * 16, "1"}
    assert "not permitted" in outcome.output


async def test_private_folders_of_the_workbench_can_be_entered_but_not_listed(open_folder: Path, work: Path) -> None:
    state = open_folder / "state" / "agent-workbench"
    tree = state / "worktrees" / "repo" / "agent-T-1"
    await asyncio.to_thread(tree.mkdir, parents=True)
    for each in (state, tree.parent):
        each.chmod(0o700)
    outcome = await run(f"cd {tree} && touch made && ls {tree.parent}; ls {work}", tree)
    assert outcome.output.count("ermission denied") == 1
    assert await asyncio.to_thread(os.listdir, tree) == ["made"]


async def test_a_user_who_cannot_work_there_runs_nothing(
    other: ProcessUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    with pytest.raises(ShellError, match=f"{other.name} cannot work below .*XDG_STATE_HOME"):
        await run("echo ran > ran", tmp_path)
    assert "ran" not in await asyncio.to_thread(os.listdir, tmp_path)


@pytest.mark.parametrize("wanted", ["no-such-user-here", "0", "root", str(os.geteuid()), "99999999999999999999"])
def test_a_user_who_protects_nothing_is_refused(wanted: str) -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.user"):
        find_user(wanted)


def test_nothing_of_the_host_is_given_away(open_folder: Path, other: ProcessUser) -> None:
    precious, folder = open_folder / "precious", open_folder / "tree"
    precious.write_text("x")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "own").write_text("x")
    os.link(precious, folder / "hard")
    (folder / "link").symlink_to(precious)
    (folder / "folder-link").symlink_to(open_folder)
    os.mkfifo(folder / "pipe")
    hand_over(str(folder), other)
    assert precious.stat().st_uid == open_folder.stat().st_uid == 0
    given = [each for each in folder.rglob("*") if each.lstat().st_uid == other.uid]
    assert sorted(each.name for each in given) == ["deep", "own"]
    with pytest.raises(OSError, match="link"):
        hand_over(str(folder / "folder-link" / "tree" / "link"), other)


async def test_it_ends_with_its_supervisor(work: Path, other: ProcessUser) -> None:
    await asyncio.to_thread(hand_over, str(work), other)
    words = ["/bin/sh", "-c", "sleep 600 & echo up; wait"]
    async with await spawn(words, folder=str(work), environment={"PATH": os.defpath}, guard=other) as process:
        assert await process.read(10) == b"up\n"
        assert (await asyncio.to_thread(Path(f"/proc/{process.pid}").stat)).st_uid == other.uid
        assert await process.stop() < 0
    assert not await asyncio.to_thread(Path(f"/proc/{process.pid}").exists)


async def test_who_cannot_end_its_commands_does_not_run_them(work: Path, other: ProcessUser) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("machine lacks: setpriv (apt-get install util-linux)")
    asks = (
        "import asyncio; from agent_workbench.adapters.shell.command_user import find_user, user_problem; "
        f"print(asyncio.run(user_problem(find_user({other.name!r}))))"
    )
    words = [setpriv, "--bounding-set=-kill", "--inh-caps=-kill", sys.executable, "-P", "-c", asks]
    asked = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60, check=False)
    assert asked.stdout == f"nobody could end a command of {other.name}: the workbench lacks the capability CAP_KILL\n"
