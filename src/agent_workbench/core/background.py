"""Background tasks that nobody awaits. A defect in one is reported when it happens."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


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
