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

from agent_workbench.api.sessions.session_handle import EventFeed
from agent_workbench.api.sessions.session_opening import open_session
from agent_workbench.bootstrap.repo_context import RepoContext, find_repo
from agent_workbench.bootstrap.shared_resources import SharedResources
from agent_workbench.core.errors import LockedError, StorageError, WorkbenchError
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.session_request import Invocation
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


def invocation_in(repo: Path) -> Invocation:
    environ = {"PATH": os.environ["PATH"], "HOME": str(repo.parent), "AGENT_MODEL__URL": "http://127.0.0.1:9"}
    return Invocation(repo, environ, {}, unconfined=True)


async def opened(site: RepoContext, name: str = "") -> str:
    """Open a session and leave it; return its name."""
    publisher = UpdatePublisher(lambda _: None)
    session, recorder = await open_session(site, SessionQuery(name), publisher, EventFeed(), trusted=True)
    await session.close()
    await recorder.close()
    return session.state.session


def traces(repo: Path, shared: SharedResources) -> tuple[object, ...]:
    """Return what an open session has: descriptors, children, folders, and what the resources keep for it."""
    folders = [sorted(each.rglob("*")) for each in (repo / "memory", state_dir() / "sessions")]
    descriptors = sorted(str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.exists())
    held = [len(holders) for _, holders in shared._retrievers._held.values()]
    return folders, descriptors, psutil.Process().children(recursive=True), held


async def assert_leaves_nothing(site: RepoContext, error: type[WorkbenchError], match: str, name: str = "") -> None:
    async def fail() -> tuple[object, ...]:
        with pytest.raises(error, match=match):
            await opened(site, name)
        return await asyncio.to_thread(traces, site.root, site.shared)

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
    name = await opened(await find_repo(invocation_in(repo)))
    await asyncio.to_thread(holding, repo / "memory/sessions" / name / "lock")
    await assert_leaves_nothing(await find_repo(invocation_in(repo)), LockedError, "somebody else", name)


async def test_rules_that_cannot_be_read(repo: Path) -> None:
    site = await find_repo(invocation_in(repo))
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
    site = await find_repo(invocation_in(repo))
    disk = small_disk(sessions, pages)
    await asyncio.to_thread(disk.__enter__)
    try:
        await assert_leaves_nothing(site, StorageError, "No space left")
        assert await asyncio.to_thread(lambda: [*sessions.iterdir()]) == [sessions / "filler"]
    finally:
        await asyncio.to_thread(disk.__exit__, None, None, None)
