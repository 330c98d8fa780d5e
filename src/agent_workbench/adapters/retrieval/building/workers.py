"""Processes that cut and count, so that the session's own one is free for the screen."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.adapters.retrieval.building.parsing import Batch
from agent_workbench.adapters.retrieval.frames import read_frame, write_frame
from agent_workbench.adapters.retrieval.index.packing import DamagedIndex, pack
from agent_workbench.adapters.retrieval.index.segments import Segment
from agent_workbench.host.handed_on import handed_on

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORKERS = 2
_MODULE = "agent_workbench.adapters.retrieval.building.worker"
_END_SECONDS = 5.0


class WorkerDied(Exception):
    """A worker ended within a batch: stopped from here, or killed by what it was given, or by somebody else."""


class Workers:
    """Two processes at most, started when there is work for them and ended by `close`.

    They die with this process: their standard input ends. Pieces are cached below `cache_dir`.
    """

    def __init__(self, cache_dir: Path, max_tokens: int) -> None:
        self.command = [sys.executable, "-P", "-m", _MODULE, str(cache_dir), str(max_tokens)]
        self._idle: list[_Worker] = []
        self._places = asyncio.Semaphore(WORKERS)
        self._threads = ThreadPoolExecutor(WORKERS, "index-worker")

    @property
    def pids(self) -> list[int]:
        """The processes that wait for work."""
        return [worker.pid for worker in self._idle]

    async def index(self, files: Mapping[str, bytes]) -> Batch | None:
        """Return the segment of these files (path to content); None if a worker dies of them."""
        return await self._ask(["index", [[path, len(data)] for path, data in files.items()]], list(files.values()))

    async def merge(self, segments: Sequence[Segment], alive: "Sequence[NDArray[np.bool_]]") -> Segment | None:
        """Return one segment of the living files of these; None if a worker dies of it."""
        parts: list[bytes | memoryview] = []
        sizes = []
        for segment, mask in zip(segments, alive, strict=True):
            packed = pack(segment.arrays())
            sizes += [sum(map(len, packed)), len(mask)]
            parts += [*packed, mask.tobytes()]
        batch = await self._ask(["merge", sizes], parts)
        return None if batch is None else batch.segment

    async def _ask(self, head: object, parts: Sequence[bytes | memoryview]) -> Batch | None:
        async with self._worker() as worker:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, worker.ask, head, parts)
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                return await asyncio.shield(waiting)
            except WorkerDied:
                return None
            except asyncio.CancelledError:
                worker.kill()
                await asyncio.wait({waiting})  # the thread, for it still looks at the process
                raise

    async def close(self) -> None:
        """End the processes; the next batch starts new ones."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(asyncio.to_thread(worker.end) for worker in idle))

    async def _start(self) -> "_Worker":
        """Return a new process; when nobody wants it any more it waits for work like the others."""
        starting = asyncio.create_task(asyncio.to_thread(_Worker, self.command))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if starting.exception() is None:
                self._idle.append(starting.result())
            raise

    @asynccontextmanager
    async def _worker(self) -> "AsyncIterator[_Worker]":
        async with self._places:
            worker = self._idle.pop() if self._idle else await self._start()
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
            env=handed_on(os.environ) | {"PYTHONPATH": paths},
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.lives = True

    def ask(self, head: object, parts: Sequence[bytes | memoryview]) -> Batch:
        """Return the answer to a message; raise `WorkerDied`."""
        source, answers = self._process.stdin, self._process.stdout
        frame = None
        if source is not None and answers is not None:
            with suppress(OSError):
                write_frame(source, head, parts)
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
