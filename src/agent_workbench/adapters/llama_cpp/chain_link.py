"""One endpoint of a fallback chain: its model, its pause after failures, and its measured prompt speed."""

import asyncio

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.priced_model import CostCapExceeded, worst_case
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ModelError, ModelUnavailable, WorkbenchError
from agent_workbench.core.model import AnswerEnd, AnswerFigures, ModelFacts, ModelRequest
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import SHORT_FORM, TokenPrice

FIRST_REST_SECONDS = 5.0
MOST_REST_SECONDS = 300.0
# With fewer new tokens a prompt does not show how fast a server reads.
_MEASURED_TOKENS = 64


class NotReady(ModelUnavailable):
    """An endpoint that is still loading when the wait for it ends."""


class StatusRelay:
    """Forwards status lines of an endpoint, only while a caller waits for it."""

    def __init__(self, on_status: OnStatus) -> None:
        self._on_status = on_status
        self.heard = False

    def __call__(self, line: str) -> None:
        if self.heard:
            self._on_status(line)


class ChainLink:
    """The endpoint `name` of a chain with its model and price. `status_relay` forwards the status lines of the model.

    After its first failure it is not asked for `rest_seconds`. Times are those of the event loop.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        status_relay: StatusRelay,
        price: TokenPrice | None = None,
        rest_seconds: float = FIRST_REST_SECONDS,
    ) -> None:
        self.name = name
        self.model = model
        self.status_relay = status_relay
        self.price = price or TokenPrice()
        self.dearness = self.price.input + self.price.output
        self.why = ""
        self.endpoint = ""
        self._first_rest_seconds = rest_seconds
        self._failures = 0
        self._rests_until = 0.0
        self._barred_until = 0.0
        self._waiting = 0
        self._tokens_per_second = 0.0
        self._thinks = False
        self._observing: asyncio.Task[ModelFacts] | None = None

    @property
    def paid(self) -> bool:
        """True if its answers cost money."""
        return not self.price.is_free

    @property
    def loading(self) -> bool:
        """True if it is still becoming ready after a wait for it ended."""
        return self._observing is not None and not self._observing.done()

    def rest_seconds(self) -> float:
        """Return the seconds left of its pause, 0.0 without one."""
        return max(0.0, self._rests_until - asyncio.get_running_loop().time())

    def barred_seconds(self) -> float:
        """Return the seconds until the time it named for a retry, 0.0 if it named none."""
        return max(0.0, self._barred_until - asyncio.get_running_loop().time())

    def reading_seconds(self, tokens: int) -> float:
        """Return the time to read a prompt of so many tokens, 0.0 if it was not measured yet."""
        return tokens / self._tokens_per_second if self._tokens_per_second else 0.0

    async def observe(self, patience_seconds: float | None) -> ModelFacts:
        """Return its facts; raise `ModelUnavailable` if it is not ready in time, and let it go on loading."""
        if seconds := self.barred_seconds():
            error = ModelUnavailable("it asked for a pause before the next request", advice="try again later")
            error.retry_after_seconds = seconds
            raise error
        if self._observing is None or self._observing.done():
            self._observing = in_background(self.model.observe(), expected=(WorkbenchError,))
        observing = self._observing
        self._waiting += 1
        self.status_relay.heard = True
        try:
            done, _ = await asyncio.wait({observing}, timeout=patience_seconds)
        except asyncio.CancelledError:
            if self._waiting == 1:
                await self.stop_observing()
            raise
        finally:
            self._waiting -= 1
            self.status_relay.heard = self._waiting > 0
        if not done:
            raise NotReady("it is not ready yet", advice="check its log")
        if observing.cancelled():
            raise ModelUnavailable("it was closed", advice="try again")
        facts = observing.result()
        self._thinks, self.endpoint = facts.thinks, facts.endpoint
        return replace(facts, endpoint=self.label(facts.endpoint))

    def most_dollars(self, request: ModelRequest) -> float:
        """Return the highest price of an answer to a request."""
        return worst_case(self.price, request, thinks=self._thinks)

    def label(self, endpoint: str) -> str:
        """Return the endpoint's name for the journal: with the name in the settings, if it has one."""
        return endpoint if self.name == SHORT_FORM else f"{self.name} ({endpoint})"

    def signed(self, end: AnswerEnd) -> AnswerEnd:
        """Return the end of an answer with the name of this endpoint."""
        return replace(end, endpoint=self.label(end.endpoint))

    def failed(self, error: ModelError) -> None:
        """Pause the endpoint: twice as long after each failure, and at least as long as it asked for."""
        self.why = error.why if isinstance(error, CostCapExceeded) else str(error)
        now = asyncio.get_running_loop().time()
        seconds = min(self._first_rest_seconds * 2**self._failures, MOST_REST_SECONDS)
        self._failures = min(self._failures + 1, 20)
        self._barred_until = max(self._barred_until, now + error.retry_after_seconds)
        self._rests_until = max(now + seconds, self._barred_until)

    def answered(self, figures: AnswerFigures) -> None:
        """Forget its failures, and remember how fast it read."""
        self.why, self._failures, self._rests_until, self._barred_until = "", 0, 0.0, 0.0
        new = figures.prompt_tokens - figures.cached_tokens
        if new >= _MEASURED_TOKENS and figures.prompt_seconds > 0:
            self._tokens_per_second = new / figures.prompt_seconds

    async def stop_observing(self) -> None:
        """Give up waiting for it."""
        if self._observing is not None:
            self._observing.cancel()
            await asyncio.gather(self._observing, return_exceptions=True)

    async def close(self) -> None:
        """Close the model."""
        await self.stop_observing()
        await self.model.close()
