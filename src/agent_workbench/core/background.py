"""Tasks that nobody awaits, whose defects are reported, and work that a cancellation does not interrupt."""

import asyncio
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

T = TypeVar("T")

MOST_SECONDS = 60.0
"""Seconds to wait after a cancellation before the work is cancelled too."""


def in_background(
    doing: Coroutine[Any, Any, Result], *, expected: tuple[type[Exception], ...] = ()
) -> asyncio.Task[Result]:
    """Start a task and return it. Keep the returned task, or it may be collected while it runs.

    An exception that is not `expected` goes to the event loop's exception handler as soon as the task ends with it.
    """
    task = asyncio.create_task(doing)
    task.add_done_callback(partial(_report, expected))
    return task


def _report(expected: tuple[type[Exception], ...], task: "asyncio.Task[Any]") -> None:
    if task.cancelled():
        return
    error = task.exception()
    if error is not None and not isinstance(error, expected):
        context = {"message": "a background task failed, which is a defect of the workbench", "exception": error}
        task.get_loop().call_exception_handler(context)


async def uninterrupted(doing: Awaitable[T], most_seconds: float = MOST_SECONDS) -> T:
    """Return the result of `doing`. A cancellation takes effect when `doing` has ended."""
    task = asyncio.ensure_future(doing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=most_seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
