"""Work that is not given up halfway: a cancellation waits until it is done."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")

MOST_SECONDS = 60.0
"""So long is waited after a cancellation; then the work is given up like any other."""


async def uninterrupted(doing: Coroutine[None, None, T], most_seconds: float = MOST_SECONDS) -> T:
    """Return what `doing` returns. If this is cancelled meanwhile, the cancellation counts after `doing` has ended."""
    task = asyncio.ensure_future(doing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=most_seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
