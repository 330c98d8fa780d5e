"""Threads that can be cancelled, and tasks that end together."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def in_thread(work: Callable[[], _Result], stop: threading.Event | None = None) -> _Result:
    """Run `work` in a thread; when cancelled, set `stop` and wait for the end of the thread."""
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()
        raise


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all coroutines at once; when one fails, cancel the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
