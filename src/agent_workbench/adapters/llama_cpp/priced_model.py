"""Model with a price: asked only if the worst case fits the spending caps, and charged for what came."""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.background import uninterrupted
from agent_workbench.core.errors import ModelError, ModelRefused, ModelUnavailable, StorageError
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    ModelFacts,
    ModelRequest,
    Purpose,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.ports.model import Model, Reservation, Spending, SpendingCapReached
from agent_workbench.core.settings.models import TokenPrice
from agent_workbench.core.task_estimates import Complexity

# Tokens are seldom shorter, so this estimate is rather too high.
_BYTES_PER_TOKEN = 3
# Tokens that chat templates add to a message.
_TOKENS_PER_MESSAGE = 8
# No prompt is smaller; with less money left the endpoint is not even observed.
_LEAST_PROMPT_TOKENS, _LEAST_ANSWER_TOKENS = 256, 64


class CostCapExceeded(ModelRefused):
    """An endpoint is not asked because its answer might exceed a cap; `why` says which in a few words."""

    def __init__(self, what: str, why: str, *, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.why = why


class PricedModel:
    """The port `Model` over `inner`, which costs `price`; today's spending of all sessions stays within `cap`."""

    def __init__(
        self, inner: Model, name: str, price: TokenPrice, cap: float, spending: Spending, on_status: OnStatus
    ) -> None:
        self._inner = inner
        self._name = name
        self._price = price
        self._cap = cap
        self._spending = spending
        self._on_status = on_status
        self._thinks = False
        # The worst case of the last request, an estimate for the next one.
        self._least = self._last = price.dollars(_LEAST_PROMPT_TOKENS, _LEAST_ANSWER_TOKENS)

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        try:
            await self._check_cap(self._last)
        except CostCapExceeded:
            # The next prompt may be a smaller one.
            self._last = max(self._least, self._last / 2)
            raise
        facts = await self._inner.observe(purpose)
        self._thinks = facts.thinks
        return facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        reserving = asyncio.ensure_future(self._reserve(request))
        try:
            reservation = await uninterrupted(reserving)
        except asyncio.CancelledError:
            if not reserving.cancelled() and reserving.exception() is None:
                await uninterrupted(self._settle(reserving.result(), 0.0))
            raise
        spent = _RunningCost(self._price, prompt_tokens_of(request))
        try:
            yield AnswerCost(spent.dollars)
            async with contextlib.aclosing(self._inner.answer(request)) as items:
                async for item in items:
                    spent.see(item)
                    if isinstance(item, AnswerEnd):
                        yield replace(item, figures=replace(item.figures, dollars=spent.dollars))
                    else:
                        # The cost comes first, so that a caller who stops at this item knows it.
                        yield AnswerCost(spent.dollars)
                        yield item
        except ModelError as error:
            if error.retry_after_seconds or not isinstance(error, ModelUnavailable):
                spent.nothing()
            error.dollars = spent.dollars
            raise
        finally:
            # Whoever stops an answer, at whatever moment, must not leave its worst case counted.
            await uninterrupted(self._settle(reservation, spent.dollars))

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        return await self._inner.count_tokens(texts, purpose)

    async def close(self) -> None:
        await self._inner.close()

    async def _reserve(self, request: ModelRequest) -> Reservation:
        worst = worst_case(self._price, request, thinks=self._thinks)
        left = request.dollars_left
        if left is not None and worst > left:
            raise CostCapExceeded(
                f"{self._name} is not asked: this answer may cost {_dollars(worst)}, and the task's "
                f"budget.dollars leaves {_dollars(left)}",
                "too little is left of the task's budget.dollars",
                advice="raise budget.dollars of the task, or put a free endpoint into the chain",
            )
        self._last = worst
        try:
            return await self._spending.reserve(self._name, worst, self._cap)
        except SpendingCapReached as reached:
            raise self._over(worst, reached.spent) from reached
        except StorageError as error:
            raise self._unknown(error) from error

    async def _check_cap(self, dollars: float) -> None:
        """Raise `CostCapExceeded` if less than this is left today."""
        try:
            spent = await self._spending.spent_today()
        except StorageError as error:
            raise self._unknown(error) from error
        if spent + dollars > self._cap:
            raise self._over(dollars, spent)

    def _over(self, worst: float, spent: float) -> CostCapExceeded:
        cap = f"${self._cap:g}" if self._cap else "$0, so nothing that costs is asked"
        return CostCapExceeded(
            f"{self._name} is not asked: this answer may cost {_dollars(worst)}, and {_dollars(spent)} were spent "
            f"today (UTC) of cost_cap_daily ({cap})",
            f"too little is left of cost_cap_daily (${self._cap:g})" if self._cap else "cost_cap_daily is 0",
            advice="raise cost_cap_daily, wait for the next day (UTC), or put a free endpoint into the chain",
        )

    def _unknown(self, error: StorageError) -> CostCapExceeded:
        why = f"{self._name} is not asked: {error}"
        return CostCapExceeded(why, "what was spent today is not known", advice=error.advice)

    async def _settle(self, reservation: Reservation, dollars: float) -> None:
        try:
            await self._spending.settle(reservation, dollars)
        except StorageError as error:
            self._on_status(f"the worst case of what {self._name} cost stays counted: {error}")


class _RunningCost:
    """Cost of an answer so far."""

    def __init__(self, price: TokenPrice, prompt_tokens: int) -> None:
        self._price = price
        self._prompt_tokens = prompt_tokens
        self._pieces = 0
        self._bytes = 0
        self.dollars = price.dollars(prompt_tokens, 0)

    def see(self, item: AnswerItem) -> None:
        """Count an item."""
        match item:
            case TextDelta() | ThoughtDelta():
                self._pieces += 1
                self._bytes += len(item.text.encode("utf-8", "surrogatepass"))
                self.dollars = self._price.dollars(self._prompt_tokens, self._answer_tokens)
            case AnswerEnd():
                self.dollars = self._told(item.figures)
            case _:
                pass

    def nothing(self) -> None:
        """Set the cost of a refused request to zero, unless a part of the answer came."""
        if not self._pieces:
            self.dollars = 0.0

    @property
    def _answer_tokens(self) -> int:
        return max(self._pieces, math.ceil(self._bytes / _BYTES_PER_TOKEN))

    def _told(self, figures: AnswerFigures) -> float:
        """Return the price of the server's figures; missing ones are replaced by our own count."""
        return self._price.dollars(
            figures.prompt_tokens or self._prompt_tokens, figures.answer_tokens or self._answer_tokens
        )


def _dollars(amount: float) -> str:
    """Return an amount as text, with digits enough that a small one is not $0."""
    return f"${amount:.4f}" if amount >= 0.001 else f"${max(0.0, amount):.2g}"


def worst_case(price: TokenPrice, request: ModelRequest, *, thinks: bool) -> float:
    """Return the highest price of an answer; a thought may be as long as the answer."""
    return price.dollars(prompt_tokens_of(request), request.answer_tokens * (2 if thinks else 1))


def prompt_tokens_of(request: ModelRequest) -> int:
    """Return the tokens of a prompt with those of the template; a high estimate if they were not counted."""
    around = _TOKENS_PER_MESSAGE * len(request.messages)
    if request.prompt_tokens:
        return request.prompt_tokens + around
    letters = sum(len(message.text.encode("utf-8", "surrogatepass")) for message in request.messages)
    return math.ceil(letters / _BYTES_PER_TOKEN) + around
