"""Tasks that nobody awaits."""

import asyncio
from typing import Any

from agent_workbench.core.background import in_background


async def failing(error: Exception) -> None:
    raise error


async def told(*tasks: "asyncio.Task[None]") -> list[BaseException]:
    """Return what the loop's handler is told until the tasks are done, each of them still held."""
    heard: list[BaseException] = []

    def hear(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        heard.append(context["exception"])

    asyncio.get_running_loop().set_exception_handler(hear)
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    return heard


async def test_a_defect_is_told_when_it_happens() -> None:
    error = ValueError("a defect")
    task = in_background(failing(error))
    assert await told(task) == [error]


async def test_what_is_expected_and_what_was_cancelled_is_not_told() -> None:
    cancelled = in_background(asyncio.sleep(60))
    cancelled.cancel()
    assert await told(in_background(failing(KeyError()), expected=(LookupError,)), cancelled) == []
