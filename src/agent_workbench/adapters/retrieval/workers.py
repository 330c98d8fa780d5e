"""Processes that cut and count, so that the session's own one is free for the screen."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agent_workbench.adapters.retrieval.frames import read_frame, write_frame
from agent_workbench.adapters.retrieval.packing import DamagedIndex
from agent_workbench.adapters.retrieval.parsing import Batch
from agent_workbench.adapters.retrieval.segments import Segment

WORKERS = 2
_MODULE = "agent_workbench.adapters.retrieval.worker"
_END_SECONDS = 5.0


class WorkerDied(Exception):
    """A worker ended within a batch: stopped from here, or killed by what it was given, or by somebody else."""


class Workers:
    """Two processes at most, started when there is work for them and ended by `close`.

    They die with this process: their standard input ends. Pieces are cached below `cache_dir`.
    """

    def __init__(self, cache_dir: Path, max_tokens: int) -> None:
        self._command = [sys.executable, "-P", "-m", _MODULE, str(cache_dir), str(max_tokens)]
        self._idle: list[_Worker] = []
        self._places = asyncio.Semaphore(WORKERS)
        self._threads = ThreadPoolExecutor(WORKERS, "index-worker")

    async def index(self, files: Mapping[str, bytes]) -> Batch | None:
        """Return the segment of these files (path to content); None if a worker dies of them."""
        async with self._worker() as worker:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, worker.index, files)
            try:
                return await asyncio.shield(waiting)
            except WorkerDied:
                return None
            except asyncio.CancelledError:
                worker.kill()
                await asyncio.wait({waiting})  # the thread, for it still looks at the process
                if not waiting.cancelled():
                    waiting.exception()
                raise

    async def close(self) -> None:
        """End the processes; the next batch starts new ones."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in idle))

    @asynccontextmanager
    async def _worker(self) -> "AsyncIterator[_Worker]":
        async with self._places:
            worker = self._idle.pop() if self._idle else await asyncio.to_thread(_Worker, self._command)
            try:
                yield worker
            finally:
                if worker.lives:
                    self._idle.append(worker)
                else:
                    await asyncio.to_thread(worker.end)


class _Worker:
    """One process. Blocks; for one thread at a time, but `kill` is for any."""

    def __init__(self, command: list[str]) -> None:
        """Start it. No module of the folder we are in is imported there, and no Ctrl-C meant for us reaches it."""
        paths = os.pathsep.join(path for path in sys.path if os.path.isabs(path))  # noqa: PTH117 - plain texts
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )
        self.lives = True

    def index(self, files: Mapping[str, bytes]) -> Batch:
        """Return the segment of these files; raise `WorkerDied`."""
        source, answers = self._process.stdin, self._process.stdout
        frame = None
        if source is not None and answers is not None:
            with suppress(OSError):
                write_frame(source, [[path, len(data)] for path, data in files.items()], tuple(files.values()))
                frame = read_frame(answers)
        match frame:
            case (int(parsed), bytes(segment)):
                with suppress(DamagedIndex):
                    return Batch(Segment.from_bytes(segment), parsed)
        self.kill()
        raise WorkerDied

    def kill(self) -> None:
        """Let it end at once, whatever it does. Does not wait."""
        self.lives = False
        self._process.kill()

    def end(self) -> None:
        """Let it end as there is nothing more to do, and wait for that."""
        self.lives = False
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
