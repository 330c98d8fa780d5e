"""The workbench in a browser."""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


async def serve_workbench(folder: Path, words: Sequence[str], port: int, on_ready: Callable[[str], None]) -> None:
    """Serve `agent` with these words on loopback until a signal ends it; `on_ready` is told the address to open.

    Raises `UsageError` when `port` cannot be had.
    """
    from agent_workbench.adapters.web.server import WorkbenchServer

    # `-P`: the current folder may hold modules that pass for ours. `exec`: without a shell between them, the server's
    # end is the workbench's too.
    command = "exec " + shlex.join([sys.executable, "-P", "-m", "agent_workbench", *words])
    await WorkbenchServer(command, title=f"Agent Workbench · {folder.name}").serve_until_stopped(port, on_ready)
