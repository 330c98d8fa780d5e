"""The processes that cut files: what they answer, what they die of, and that they never stay behind."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.file_parser import FileParser
from agent_workbench.adapters.retrieval.index.segments import merge
from agent_workbench.adapters.retrieval.worker_pool import WorkerPool

FILES = {
    "a.py": b"def first():\n    return 1\n",
    "odd \udcff\n.md": "# Größe\n\nText.\n".encode(),
    "same.py": b"def first():\n    return 1\n",
}
ORPHAN = """
import asyncio, sys
from pathlib import Path
from agent_workbench.adapters.retrieval.worker_pool import WorkerPool

async def main():
    workers = WorkerPool(Path(sys.argv[1]), 400)
    await workers.index({"a.py": b"a = 1"})
    print(workers.pids[0], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[WorkerPool]:
    made = WorkerPool(tmp_path / "cache", 400)
    yield made
    await made.close()


async def test_a_worker_answers_as_the_parser_does_here_and_merges_as_is_merged_here(
    workers: WorkerPool, tmp_path: Path
) -> None:
    batch = await workers.index(FILES)
    assert batch is not None
    here = await asyncio.to_thread(FileParser(ChunkCache(tmp_path / "other"), 400).index, FILES)
    assert (batch.segment.to_bytes(), batch.parsed) == (here.segment.to_bytes(), 2)
    again = await workers.index({"b.py": FILES["a.py"]})
    assert again is not None
    assert again.parsed == 0
    alive = [batch.segment.files.kinds == 0, again.segment.files.kinds == 0]
    merged = await workers.merge([batch.segment, again.segment], alive)
    assert merged is not None
    assert merged.to_bytes() == merge([batch.segment, again.segment], alive).to_bytes()
    assert list(merged.files.paths) == ["a.py", "same.py", "b.py"]


async def test_who_is_killed_is_followed_by_another(workers: WorkerPool) -> None:
    assert await workers.index(FILES) is not None
    os.kill(workers.pids[0], signal.SIGKILL)
    assert await workers.index(FILES) is None
    assert await workers.index(FILES) is not None
    await workers.close()
    assert workers.pids == []
    assert await workers.index(FILES) is not None


async def test_a_worker_is_told_no_secret(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_TOKEN", "secret")
    assert await workers.index(FILES) is not None
    environ = psutil.Process(workers.pids[0]).environ()
    assert "PYTHONPATH" in environ
    assert "secret" not in environ.values()


async def test_a_worker_that_nobody_waits_for_any_more_when_it_has_started_is_ended_with_the_others(
    workers: WorkerPool,
) -> None:
    asking = asyncio.create_task(workers.index(FILES))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    (pid,) = workers.pids
    await workers.close()
    assert not psutil.pid_exists(pid)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="machine lacks: pidfd_open, to wait for another's child")
def test_a_worker_ends_with_a_session_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ORPHAN, str(tmp_path / "cache")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as session:
        assert session.stdout is not None
        worker = os.pidfd_open(int(session.stdout.readline()))
        session.kill()
    try:
        assert select.select([worker], [], [], 30.0)[0] == [worker]
    finally:
        os.close(worker)
