"""The process that started this one: a server of ours ends with it."""

import asyncio
import os

LOOK_SECONDS = 0.2
"""Seconds between two looks; no event tells it on every system."""


async def parent_gone(parent: int = 0) -> None:
    """Wait until the process that started this one has ended; without end for one that the system itself started.

    `parent` is its id, looked up as early as possible (0: now): it may end while this process still loads.
    """
    parent = parent or os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - see above
        await asyncio.sleep(LOOK_SECONDS)
