"""The end of a serving process: with its client or parent, at a signal, and within a second."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

from agent_workbench.api.screen_services import parent_gone


async def first_end(serving: Coroutine[Any, Any, None], parent: int) -> None:
    """Serve until that ends, the process `parent` that started this one is gone, or SIGINT, SIGTERM or SIGHUP comes."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    tasks = {asyncio.ensure_future(each) for each in (serving, stopped.wait(), parent_gone(parent))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def end_process(code: int) -> NoReturn:
    """End this process at once: Python would wait for threads that read the client's pipe or search."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
