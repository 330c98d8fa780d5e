"""Parsing of changed files, in a thread of this process or in a pool of worker processes."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.adapters.retrieval.index.file_parser import FileParser, ParsedBatch
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex, pack
from agent_workbench.adapters.retrieval.index.segments import Segment
from agent_workbench.adapters.retrieval.index_worker import BATCH_SECONDS
from agent_workbench.adapters.retrieval.worker_frames import Part
from agent_workbench.adapters.retrieval.worker_process import WorkerLost, WorkerProcess, in_thread
from agent_workbench.core.errors import ShellError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


WORKERS = 2
_MODULE = "agent_workbench.adapters.retrieval.index_worker"


class WorkerPool:
    """Two processes at most, started when there is work and ended by `close`.

    Chunks are cached below `cache_dir`. Raises `ShellError` if no process can be started.
    """

    def __init__(self, cache_dir: Path, max_tokens: int) -> None:
        self.arguments = ["-m", _MODULE, str(cache_dir.absolute()), str(max_tokens)]
        self._idle: list[WorkerProcess] = []
        self._places = asyncio.Semaphore(WORKERS)
        self._threads = ThreadPoolExecutor(WORKERS, "index-worker")

    @property
    def pids(self) -> list[int]:
        """Ids of the idle processes."""
        return [child.pid for child in self._idle]

    async def index(self, files: Mapping[str, bytes]) -> ParsedBatch | None:
        """Return the segment of these files (path to content), None if a worker crashed on them."""
        return await self._ask(["index", [[path, len(data)] for path, data in files.items()]], list(files.values()))

    async def merge(self, segments: Sequence[Segment], alive: "Sequence[NDArray[np.bool_]]") -> Segment | None:
        """Return the live files of these segments as one segment, None if a worker crashed."""
        parts: list[Part] = []
        sizes = []
        for segment, mask in zip(segments, alive, strict=True):
            packed = pack(segment.arrays())
            sizes += [sum(map(len, packed)), len(mask)]
            parts += [*packed, mask.tobytes()]
        batch = await self._ask(["merge", sizes], parts)
        return None if batch is None else batch.segment

    async def _ask(self, head: object, parts: Sequence[Part]) -> ParsedBatch | None:
        async with self._child() as child:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, _asked, child, head, parts)
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                return await asyncio.shield(waiting)
            except asyncio.CancelledError:
                child.kill()
                await asyncio.wait({waiting})  # the thread, for it still looks at the process
                raise

    async def close(self) -> None:
        """End the processes; the next request starts new ones."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(asyncio.to_thread(child.end) for child in idle))

    async def _start(self) -> WorkerProcess:
        """Return a new process; if the caller is cancelled meanwhile, it joins the idle ones."""
        starting = asyncio.create_task(asyncio.to_thread(WorkerProcess, self.arguments, os.environ))
        try:
            return await asyncio.shield(starting)
        except WorkerLost as error:
            raise ShellError(f"the code cannot be indexed: {error}") from error
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if starting.exception() is None:
                self._idle.append(starting.result())
            raise

    @asynccontextmanager
    async def _child(self) -> AsyncIterator[WorkerProcess]:
        async with self._places:
            child = self._idle.pop() if self._idle else await self._start()
            try:
                yield child
            finally:
                if child.lives:
                    self._idle.append(child)
                else:
                    await asyncio.to_thread(child.end)


def _asked(child: WorkerProcess, head: object, parts: Sequence[Part]) -> ParsedBatch | None:
    """Return the answer, None if the process died or was ended for an invalid answer. Blocks."""
    try:
        match child.ask(head, parts, BATCH_SECONDS):
            case (int(parsed), memoryview() as segment):
                return ParsedBatch(Segment.from_bytes(segment), parsed)
    except (WorkerLost, DamagedIndex):
        pass
    child.kill()
    return None


class ParsingTools(Struct):
    """Parser and worker processes, shared by all folders; `parsed` counts files that no cache knew."""

    parser: FileParser
    workers: WorkerPool
    parsed: int = 0

    async def parse(self, texts: Mapping[str, bytes], crashed: set[str], *, in_process: bool) -> list[ParsedBatch]:
        """Return the texts as segments; a path that kills a worker goes into `crashed`."""
        if not texts:
            return []
        if in_process:
            stop = threading.Event()
            return [await in_thread(partial(self.parser.index, texts, stop), stop)]
        batch = await self.workers.index(texts)
        if batch is not None:
            return [batch]
        # A grammar crashed on one of them, or the worker was killed: each file is tried twice more, alone.
        parsed = []
        for path, data in texts.items():
            batch = await self.workers.index({path: data}) or await self.workers.index({path: data})
            if batch is None:
                crashed.add(path)
            else:
                parsed.append(batch)
        return parsed
