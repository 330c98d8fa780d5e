"""Work in threads that hears when nobody wants it any more, and tasks that end together."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def in_thread(work: Callable[[], _Result], stop: threading.Event | None = None) -> _Result:
    """Do `work` in a thread; when cancelled, set `stop` and wait until the thread has heard it."""
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
    """Do all of it at once; when one fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
