"""Order in which the endpoints of a chain are asked, by the task's complexity and what is left of the day's cap."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink
from agent_workbench.core.errors import StorageError
from agent_workbench.core.model import ChoiceReason
from agent_workbench.core.ports.model import Spending
from agent_workbench.core.task_estimates import Complexity

LEAST_QUOTA = 0.2
"""Part of the day's cap below which a task that is not complex begins with the endpoints that cost nothing."""

UNKNOWN_SECONDS = 10.0
"""Time after which a sum that was not known is asked for again: a database that is away may take seconds to say so."""

Quota = Callable[[], Awaitable[float | None]]
"""Returns the part of the day's cap that is left, from 0.0 to 1.0; None if it is unknown."""


class EndpointOrder(Struct, frozen=True):
    """The endpoints of a chain in the order in which they are asked, and why."""

    links: tuple[ChainLink, ...]
    reason: ChoiceReason = ChoiceReason.ORDER
    complexity: Complexity = Complexity.SIMPLE
    quota: float | None = None

    @property
    def may_cost(self) -> bool:
        """True if at least one endpoint costs money."""
        return any(link.paid for link in self.links)


def order_links(links: tuple[ChainLink, ...], complexity: Complexity, quota: float | None) -> EndpointOrder:
    """Return the order of a chain. An unknown quota is none at all, whatever the complexity."""
    free = tuple(link for link in links if not link.paid)
    paid = tuple(link for link in links if link.paid)
    if not paid or not free:
        return EndpointOrder(links, ChoiceReason.ORDER, complexity, quota)
    if complexity is Complexity.COMPLEX and quota:
        return EndpointOrder((*paid, *free), ChoiceReason.COMPLEXITY, complexity, quota)
    if quota is None or quota < LEAST_QUOTA:
        return EndpointOrder((*free, *paid), ChoiceReason.QUOTA, complexity, quota)
    return EndpointOrder(links, ChoiceReason.ORDER, complexity, quota)


def quota_of(spending: Spending, cap: float) -> Quota:
    """Return the question for what is left of a day's cap; with a cap of 0 nothing is."""

    unknown_until = 0.0

    async def left() -> float | None:
        nonlocal unknown_until
        if cap <= 0:
            return 0.0
        clock = asyncio.get_running_loop()
        if clock.time() < unknown_until:
            return None
        try:
            spent = await spending.spent_today()
        except StorageError:
            unknown_until = clock.time() + UNKNOWN_SECONDS
            return None
        return min(1.0, max(0.0, round(1.0 - spent / cap, 4)))

    return left
