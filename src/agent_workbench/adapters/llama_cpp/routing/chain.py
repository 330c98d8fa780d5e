"""The port `Model` over chains of endpoints: who fails rests, the next one is asked, an earlier one is returned to."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.http_client.backoff import OnStatus
from agent_workbench.adapters.llama_cpp.routing.chain_link import ChainLink, NotReady
from agent_workbench.core.errors import ContextOverflow, ModelError, ModelUnavailable
from agent_workbench.core.model import AnswerEnd, AnswerItem, ModelFacts, ModelRequest, Purpose

# How long a server may load while somebody else could be asked.
LOADING_SECONDS = 10.0
# The longest that an earlier endpoint of the chain may read a prompt anew before it is left alone for now.
RETURN_SECONDS = 60.0
# The longest that is waited for an endpoint which said when it will be able, where nobody else is left.
WAIT_SECONDS = 600.0


class Standing(Struct):
    """Where a chain stands: who is asked, and who failed (in this order) since the last answer.

    `waited` are those that were already waited for; `prompt_tokens` is the size of the last prompt.
    """

    links: tuple[ChainLink, ...]
    current: ChainLink | None = None
    tried: dict[ChainLink, ModelError] = field(default_factory=dict)
    waited: set[ChainLink] = field(default_factory=set)
    prompt_tokens: int = 0

    def untried(self) -> list[ChainLink]:
        """Return who may still be asked, in the chain's order."""
        return [link for link in self.links if link not in self.tried]

    def worth_waiting(self) -> ChainLink | None:
        """Return who failed but will be able soon: it loads, or has said when to ask again."""
        able = [
            link
            for link, error in self.tried.items()
            if link not in self.waited
            and (isinstance(error, NotReady) or 0 < error.retry_after_seconds <= WAIT_SECONDS)
        ]
        return min(able, key=ChainLink.barred_seconds, default=None)

    def has_another(self) -> bool:
        """Return whether anybody is left to ask."""
        return bool(self.untried()) or self.worth_waiting() is not None

    def start_over(self) -> None:
        """Forget who failed: there was an answer, or nobody is left."""
        self.tried.clear()
        self.waited.clear()


class ChainedModel:
    """Asks for each purpose the endpoints of its chain (`chains`, none of them empty); satisfies `core.ports.Model`.

    `on_status` gets a line on who is asked and why another one is not.
    """

    def __init__(
        self,
        chains: Mapping[Purpose, tuple[ChainLink, ...]],
        on_status: OnStatus,
        *,
        loading_seconds: float = LOADING_SECONDS,
    ) -> None:
        # Purposes with the same chain stand together: what was found out for one holds for the other.
        standings = {links: Standing(links) for links in chains.values()}
        self._standings = {purpose: standings[links] for purpose, links in chains.items()}
        self._on_status = on_status
        self._loading_seconds = loading_seconds

    async def observe(self, purpose: Purpose = Purpose.EXECUTOR) -> ModelFacts:
        _, facts = await self._meet(self._standing(purpose))
        return facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        standing = self._standing(request.purpose)
        link = await self._asked(standing)
        standing.prompt_tokens = request.prompt_tokens
        others = standing.worth_waiting() or [each for each in standing.untried() if each is not link]
        link.voice.heard = True
        try:
            asked = replace(request, patient=request.patient and not others)
            async with contextlib.aclosing(link.model.answer(asked)) as items:
                async for item in items:
                    if isinstance(item, AnswerEnd):
                        link.answered(item.figures)
                        standing.start_over()
                        yield link.signed(item)
                    else:
                        yield item
        except ContextOverflow:
            raise
        except ModelError as error:
            self._failed(standing, link, error)
            raise
        finally:
            link.voice.heard = False

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        standing = self._standing(purpose)
        link = await self._asked(standing)
        try:
            return await link.model.count_tokens(texts, purpose)
        except ModelError as error:
            self._failed(standing, link, error)
            raise

    async def close(self) -> None:
        links = {link for standing in self._standings.values() for link in standing.links}
        await asyncio.gather(*(link.close() for link in links))

    def _standing(self, purpose: Purpose) -> Standing:
        return self._standings.get(purpose, self._standings[Purpose.EXECUTOR])

    async def _meet(self, standing: Standing) -> tuple[ChainLink, ModelFacts]:
        """Return who is to be asked, and what it says of itself."""
        while True:
            link, patience = await self._next(standing)
            try:
                facts = await link.observe(patience)
            except ModelError as error:
                self._passed(standing, link, error)
                if standing.has_another():
                    continue
                if (whole := _exhausted(standing, error)) is error:
                    raise
                raise whole from error
            if len(standing.links) > 1 and standing.current is not link:
                self._on_status(f"{link.name} is asked")
            standing.current = link
            return link, replace(facts, passed=_passed_before(standing, link))

    async def _asked(self, standing: Standing) -> ChainLink:
        """Return who is asked now, whoever can answer where nobody was met yet."""
        return standing.current or (await self._meet(standing))[0]

    async def _next(self, standing: Standing) -> tuple[ChainLink, float | None]:
        """Return who is to be asked, and for how many seconds it is waited for (None: as long as it takes)."""
        untried = standing.untried()
        late = standing.worth_waiting()
        if untried:
            link = _choice(standing, untried)
            alone = len(untried) == 1 and late is None
            patience = None if alone else 0.0 if link.loading else self._loading_seconds
        else:
            link, patience = late or standing.links[0], None
            standing.waited.add(link)
            standing.tried.pop(link, None)
        if patience is None and 0 < (seconds := link.barred_seconds()) <= WAIT_SECONDS:
            self._on_status(f"nobody else answers: {link.name} is asked again in {seconds:.0f} s")
            await asyncio.sleep(seconds)
        return link, patience

    def _passed(self, standing: Standing, link: ChainLink, error: ModelError) -> None:
        """Take note that an endpoint could not answer."""
        link.failed(error)
        standing.tried[link] = error
        if standing.current is link:
            standing.current = None
        if len(standing.links) > 1:
            self._on_status(f"{link.name} is passed: {error}")

    def _failed(self, standing: Standing, link: ChainLink, error: ModelError) -> None:
        """Take note of who failed when it was asked; raise the error of the whole chain when nobody else is left."""
        self._passed(standing, link, error)
        error.another = standing.has_another()
        if not error.another and (whole := _exhausted(standing, error)) is not error:
            raise whole from error


def _choice(standing: Standing, untried: Sequence[ChainLink]) -> ChainLink:
    """Return the best one to ask: the one that holds the prompt, unless an earlier one is worth returning to."""
    ready = [link for link in untried if not link.rest_seconds()]
    if not ready:
        return min(untried, key=lambda link: (link.barred_seconds(), link.rest_seconds()))
    current = standing.current
    if current not in ready:
        return ready[0]
    earlier = ready[: ready.index(current)]
    return next((link for link in earlier if _is_worth_returning(link, current, standing.prompt_tokens)), current)


def _is_worth_returning(earlier: ChainLink, current: ChainLink, prompt_tokens: int) -> bool:
    """Return whether to go back: it saves money, or it reads the prompt anew quickly (as far as is known)."""
    return earlier.dearness < current.dearness or earlier.reading_seconds(prompt_tokens) <= RETURN_SECONDS


def _passed_before(standing: Standing, link: ChainLink) -> tuple[str, ...]:
    before = standing.links[: standing.links.index(link)]
    return tuple(f"{each.name}: {each.why}" for each in before if each.why)


def _exhausted(standing: Standing, last: ModelError) -> ModelError:
    """Return the error for a chain of which nobody is left; the next request may try all of them again."""
    tried = dict(standing.tried)
    standing.start_over()
    if len(standing.links) == 1:
        return last
    reasons = "; ".join(f"{link.name}: {error}" for link, error in tried.items())
    advice = "; ".join(dict.fromkeys(f"{link.name}: {error.advice}" for link, error in tried.items() if error.advice))
    error = ModelUnavailable(
        f"no endpoint could answer: {reasons}", advice=advice, partial=getattr(last, "partial", "")
    )
    error.dollars = last.dollars
    return error
