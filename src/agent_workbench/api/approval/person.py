"""Check that a person started this process, for whatever only a person may do."""

import asyncio

from agent_workbench.core.invocation import Invocation


async def check_person(invocation: Invocation) -> None:
    """Raise `TrustError` in a process that a command of the agent started."""
    from agent_workbench.bootstrap import stores

    await asyncio.to_thread(stores.check_person, invocation)
