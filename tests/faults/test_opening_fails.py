"""A session that cannot be opened leaves nothing behind: no lock, no descriptor, no process, no folder, no holder."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from agent_workbench.api.repo_context import TerminalRepoContext, find_site, open_desk
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.errors import LockedError, StorageError, WorkbenchError
from agent_workbench.core.invocation import Place
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.publisher import UpdatePublisher
from agent_workbench.system.user_dirs import config_dir, state_dir
from tests.adapters.git.user import make_repo
from tests.e2e.calc import FILES

HOLD = """
import sys
from pathlib import Path
from agent_workbench.system.locks import FileLock
lock = FileLock(Path(sys.argv[1]), "somebody else")
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return make_repo(tmp_path / "repo", FILES).root


def place_of(repo: Path, session: str = "") -> Place:
    environ = {"PATH": os.environ["PATH"], "HOME": str(repo.parent), "AGENT_MODEL__URL": "http://127.0.0.1:9"}
    return Place(repo, environ, {}, session, unconfined=True)


async def opened(site: TerminalRepoContext) -> str:
    """Open a session and leave it; return its name."""
    session, recorder = await open_desk(
        site, UpdatePublisher(SessionState()), trusted=True, on_recorded=lambda *_: None
    )
    await session.close()
    await recorder.close()
    return session.state.session


def traces(repo: Path, house: SharedResources) -> tuple[object, ...]:
    """Return what an open session has: descriptors, children, folders, and what the house keeps for it."""
    folders = [sorted(each.rglob("*")) for each in (repo / "memory", state_dir() / "sessions")]
    descriptors = sorted(str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.exists())
    held = [len(holders) for _, holders in house._retrievers._held.values()]
    return folders, descriptors, psutil.Process().children(recursive=True), held


async def assert_leaves_nothing(site: TerminalRepoContext, error: type[WorkbenchError], match: str) -> None:
    async def fail() -> tuple[object, ...]:
        with pytest.raises(error, match=match):
            await opened(site)
        return await asyncio.to_thread(traces, site.root, site.house)

    first = await fail()  # after the first, all that a process keeps for good is there
    assert await fail() == first


@pytest.fixture
def holding() -> Iterator[Callable[[Path], None]]:
    """Give a function that has another process hold a lock."""
    processes: list[subprocess.Popen[bytes]] = []

    def hold(path: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"

    yield hold
    for process in processes:
        process.communicate()


async def test_a_journal_that_another_process_holds(repo: Path, holding: Callable[[Path], None]) -> None:
    name = await opened(await find_site(place_of(repo)))
    await asyncio.to_thread(holding, repo / "memory/sessions" / name / "lock")
    await assert_leaves_nothing(await find_site(place_of(repo, name)), LockedError, "somebody else")


async def test_rules_that_cannot_be_read(repo: Path) -> None:
    site = await find_site(place_of(repo))
    await asyncio.to_thread((config_dir() / "rules.yaml").mkdir, parents=True)
    await assert_leaves_nothing(site, StorageError, "rules.yaml")
    assert not await asyncio.to_thread((repo / "memory/sessions").exists)


@contextmanager
def small_disk(folder: Path, pages: int) -> Iterator[None]:
    """Put a disk in place of a folder that has room for so many pages of 4 kB."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("machine lacks: the right to mount a small disk")
    try:
        (folder / "filler").write_bytes(bytes(4096 * (16 - pages)))
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("pages", [0, 1])
async def test_a_disk_that_is_full_when_the_session_begins(repo: Path, pages: int) -> None:
    sessions = repo / "memory/sessions"
    site = await find_site(place_of(repo))
    disk = small_disk(sessions, pages)
    await asyncio.to_thread(disk.__enter__)
    try:
        await assert_leaves_nothing(site, StorageError, "No space left")
        assert await asyncio.to_thread(lambda: [*sessions.iterdir()]) == [sessions / "filler"]
    finally:
        await asyncio.to_thread(disk.__exit__, None, None, None)
