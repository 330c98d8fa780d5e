"""Work that a cancellation does not interrupt."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

MOST_SECONDS = 60.0
"""Seconds to wait after a cancellation before the work is cancelled too."""


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
