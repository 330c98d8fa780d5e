"""The port `Model` over fallback chains: the order of the endpoints, the rest of a failed one, and its return."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.chain_link import ChainLink, NotReady
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.errors import ContextOverflow, ModelError, ModelUnavailable, StorageError
from agent_workbench.core.model import (
    AnswerEnd,
    AnswerItem,
    ChoiceReason,
    EndpointChoice,
    ModelFacts,
    ModelRequest,
    Purpose,
)
from agent_workbench.core.ports.model import Spending
from agent_workbench.core.task_estimates import Complexity

LEAST_QUOTA = 0.2
"""Part of the day's cap below which a task that is not complex begins with the endpoints that cost nothing."""

UNKNOWN_SECONDS = 10.0
"""Time after which a sum that was not known is asked for again: a database that is away may take seconds to say so."""

Quota = Callable[[], Awaitable[float | None]]
"""Returns the part of the day's cap that is left, from 0.0 to 1.0; None if it is unknown."""

# How long a server may load while another endpoint could answer.
LOADING_SECONDS = 10.0
# The longest time to read the whole prompt at which going back to an earlier endpoint is worth it.
RETURN_SECONDS = 60.0
# The longest wait for an endpoint that said when to retry, if no other is left.
WAIT_SECONDS = 600.0


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


class ChainState(Struct):
    """State of one chain: the current endpoint, and those that failed since the last answer, in order.

    `waited` are those that were already waited for; `prompt_tokens` is the size of the last prompt.
    """

    links: tuple[ChainLink, ...]
    order: EndpointOrder
    current: ChainLink | None = None
    tried: dict[ChainLink, ModelError] = field(default_factory=dict)
    waited: set[ChainLink] = field(default_factory=set)
    prompt_tokens: int = 0

    def untried(self) -> list[ChainLink]:
        """Return the endpoints that may still be asked, in the chain's order."""
        return [link for link in self.order.links if link not in self.tried]

    def worth_waiting(self) -> ChainLink | None:
        """Return a failed endpoint that will be ready soon: it is loading, or said when to retry."""
        able = [
            link
            for link, error in self.tried.items()
            if link not in self.waited
            and (isinstance(error, NotReady) or 0 < error.retry_after_seconds <= WAIT_SECONDS)
        ]
        return min(able, key=ChainLink.barred_seconds, default=None)

    def arrange(self, order: EndpointOrder) -> None:
        """Take another order; the current endpoint is kept unless the reason for it is gone."""
        if order.links != self.order.links:
            self.current = None
        self.order = order

    def choice(self, link: ChainLink, request: ModelRequest) -> EndpointChoice:
        """Return the choice of an endpoint for a request."""
        order = self.order
        fallback = link.paid != order.links[0].paid
        return EndpointChoice(
            link.label(link.endpoint),
            link.paid,
            order.reason,
            order.complexity,
            order.quota,
            fallback,
            _passed_before(self, link) if fallback else (),
            request.prompt_tokens,
            link.most_dollars(request),
        )

    def has_another(self) -> bool:
        """Return True if an endpoint is left to ask."""
        return bool(self.untried()) or self.worth_waiting() is not None

    def start_over(self) -> None:
        """Forget the failures: there was an answer, or no endpoint is left."""
        self.tried.clear()
        self.waited.clear()


class ChainedModel:
    """The port `Model` over one chain of endpoints per purpose (`chains`, none of them empty).

    `on_status` gets a line about which endpoint is asked, and why another is not. `quota` tells what is left of the
    day's cap: without it a chain is asked in its own order.
    """

    def __init__(
        self,
        chains: Mapping[Purpose, tuple[ChainLink, ...]],
        on_status: OnStatus,
        *,
        loading_seconds: float = LOADING_SECONDS,
        quota: Quota | None = None,
    ) -> None:
        # Purposes with the same chain share its state.
        states = {links: ChainState(links, EndpointOrder(links)) for links in chains.values()}
        self._states = {purpose: states[links] for purpose, links in chains.items()}
        self._on_status = on_status
        self._loading_seconds = loading_seconds
        self._quota = quota

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        state = self._state(purpose)
        if self._quota is not None and state.order.may_cost:
            state.arrange(order_links(state.links, complexity, await self._quota()))
        _, facts = await self._meet(state)
        return facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        state = self._state(request.purpose)
        link = await self._asked(state)
        state.prompt_tokens = request.prompt_tokens
        others = state.worth_waiting() or [each for each in state.untried() if each is not link]
        link.status_relay.heard = True
        try:
            asked = replace(request, patient=request.patient and not others)
            if state.order.may_cost:
                yield state.choice(link, request)
            async with contextlib.aclosing(link.model.answer(asked)) as items:
                async for item in items:
                    if isinstance(item, AnswerEnd):
                        link.answered(item.figures)
                        state.start_over()
                        yield link.signed(item)
                    else:
                        yield item
        except ContextOverflow:
            raise
        except ModelError as error:
            self._failed(state, link, error)
            raise
        finally:
            link.status_relay.heard = False

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        state = self._state(purpose)
        link = await self._asked(state)
        try:
            return await link.model.count_tokens(texts, purpose)
        except ModelError as error:
            self._failed(state, link, error)
            raise

    async def close(self) -> None:
        links = {link for state in self._states.values() for link in state.links}
        await asyncio.gather(*(link.close() for link in links))

    def _state(self, purpose: Purpose) -> ChainState:
        return self._states.get(purpose, self._states[Purpose.EXECUTOR])

    async def _meet(self, state: ChainState) -> tuple[ChainLink, ModelFacts]:
        """Return the next endpoint that is ready, and its facts."""
        while True:
            link, patience = await self._next(state)
            try:
                facts = await link.observe(patience)
            except ModelError as error:
                self._passed(state, link, error)
                if state.has_another():
                    continue
                if (whole := _exhausted(state, error)) is error:
                    raise
                raise whole from error
            if len(state.links) > 1 and state.current is not link:
                self._on_status(f"asking {link.name}")
            state.current = link
            return link, replace(facts, passed=_passed_before(state, link))

    async def _asked(self, state: ChainState) -> ChainLink:
        """Return the current endpoint; choose one if there is none yet."""
        return state.current or (await self._meet(state))[0]

    async def _next(self, state: ChainState) -> tuple[ChainLink, float | None]:
        """Return the endpoint to try, and how many seconds to wait for it (None: without limit)."""
        untried = state.untried()
        late = state.worth_waiting()
        if untried:
            link = _choice(state, untried)
            alone = len(untried) == 1 and late is None
            patience = None if alone else 0.0 if link.loading else self._loading_seconds
        else:
            link, patience = late or state.order.links[0], None
            state.waited.add(link)
            state.tried.pop(link, None)
        if patience is None and 0 < (seconds := link.barred_seconds()) <= WAIT_SECONDS:
            self._on_status(f"no other endpoint answers; asking {link.name} again in {seconds:.0f} s")
            await asyncio.sleep(seconds)
        return link, patience

    def _passed(self, state: ChainState, link: ChainLink, error: ModelError) -> None:
        """Record that an endpoint could not answer."""
        link.failed(error)
        state.tried[link] = error
        if state.current is link:
            state.current = None
        if len(state.links) > 1:
            self._on_status(f"skipping {link.name}: {error}")

    def _failed(self, state: ChainState, link: ChainLink, error: ModelError) -> None:
        """Record a failed request; raise the error of the whole chain if no endpoint is left."""
        self._passed(state, link, error)
        error.another = state.has_another()
        if not error.another and (whole := _exhausted(state, error)) is not error:
            raise whole from error


def _choice(state: ChainState, untried: Sequence[ChainLink]) -> ChainLink:
    """Return the best endpoint: the current one, which has the prompt cached, unless an earlier one is worth it."""
    ready = [link for link in untried if not link.rest_seconds()]
    if not ready:
        return min(untried, key=lambda link: (link.barred_seconds(), link.rest_seconds()))
    current = state.current
    if current not in ready:
        return ready[0]
    earlier = ready[: ready.index(current)]
    return next((link for link in earlier if _is_worth_returning(link, current, state.prompt_tokens)), current)


def _is_worth_returning(earlier: ChainLink, current: ChainLink, prompt_tokens: int) -> bool:
    """Return True if going back saves money, or the earlier endpoint reads the whole prompt quickly (if known)."""
    return earlier.dearness < current.dearness or earlier.reading_seconds(prompt_tokens) <= RETURN_SECONDS


def _passed_before(state: ChainState, link: ChainLink) -> tuple[str, ...]:
    before = state.order.links[: state.order.links.index(link)]
    return tuple(f"{each.name}: {each.why}" for each in before if each.why)


def _exhausted(state: ChainState, last: ModelError) -> ModelError:
    """Return the error of a chain without endpoints left; the next request may try all of them again."""
    tried = dict(state.tried)
    state.start_over()
    if len(state.links) == 1:
        return last
    reasons = "; ".join(f"{link.name}: {error}" for link, error in tried.items())
    advice = "; ".join(dict.fromkeys(f"{link.name}: {error.advice}" for link, error in tried.items() if error.advice))
    error = ModelUnavailable(
        f"no endpoint could answer: {reasons}", advice=advice, partial=getattr(last, "partial", "")
    )
    error.dollars = last.dollars
    return error
