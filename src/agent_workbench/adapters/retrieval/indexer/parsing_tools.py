"""Parsing of changed files, in a thread of this process or in worker processes."""

import threading
from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from agent_workbench.adapters.retrieval.indexer.file_parser import FileParser, ParsedBatch
from agent_workbench.adapters.retrieval.indexer.worker_pool import WorkerPool
from agent_workbench.adapters.retrieval.worker_processes.threads import in_thread


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
