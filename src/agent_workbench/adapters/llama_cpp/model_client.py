"""HTTP client of one endpoint with OpenAI's chat completions: a body that it supports, and what it lacks."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from http import HTTPStatus

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.answer_stream import AnswerReader
from agent_workbench.adapters.llama_cpp.capabilities import ServerCapabilities, detect_capabilities
from agent_workbench.adapters.llama_cpp.context_size import MEASURED, PromptReadings, load_model
from agent_workbench.adapters.llama_cpp.gbnf import Thinking, with_thought
from agent_workbench.adapters.llama_cpp.http_endpoint import Deadline, Endpoint, StreamedReply
from agent_workbench.adapters.llama_cpp.server_answers import ServerError
from agent_workbench.adapters.llama_cpp.token_counts import Token, TokenCounts
from agent_workbench.adapters.llama_cpp.turns import Backoff, OnStatus, ServerTurns
from agent_workbench.core.errors import ContextOverflow, ModelUnavailable
from agent_workbench.core.model import AnswerEnd, AnswerItem, ModelFacts, ModelRequest, PromptProgress, Purpose
from agent_workbench.core.task_estimates import Complexity

_ROUTE = "/v1/chat/completions"
READY_SECONDS = 600.0
STATED = "the settings"
CUT_ADVICE = (
    "serve the model with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH), or set model.context_tokens to its size"
)

GRAMMAR = "grammar"
THINKING_BUDGET = "thinking_budget_tokens"
_LONGER_NAME = "max_completion_tokens"
# Fields that a request can do without, in the order in which an error message is searched for them.
_OPTIONAL = (
    GRAMMAR,
    "cache_prompt",
    "return_progress",
    THINKING_BUDGET,
    "min_p",
    "top_k",
    "top_p",
    "temperature",
    "seed",
    "stream_options",
    "max_tokens",
    _LONGER_NAME,
)
_THIS_GRAMMAR = re.compile(
    r"(pars|initiali[sz]|compil|invalid|too (large|long|many|complex)).{0,60}grammar", re.IGNORECASE
)


def say_nothing(_: str) -> None:
    """Ignore a status line."""


class LlamaCppModel:
    """The port `Model` for the server at `url`. The API key is sent and never shown.

    `model_name` selects a model of a server with several. `on_status` gets status lines while a request waits. A server
    may take `ready_seconds` to load its model. `turns` are those of all sessions that ask this server. `context_tokens`
    is the context that the user states: no more than that is used, whatever the server says. Without `loads` a model
    that is not loaded is left so until it is asked, and its context may be unknown.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        model_name: str = "",
        on_status: OnStatus = say_nothing,
        ready_seconds: float = READY_SECONDS,
        turns: ServerTurns | None = None,
        context_tokens: int = 0,
        loads: bool = True,
    ) -> None:
        self._endpoint = Endpoint(url, api_key)
        self._model_name = model_name
        self._on_status = on_status
        self._ready_seconds = ready_seconds
        self._turns = turns or ServerTurns()
        self._stated_tokens = context_tokens
        self._loads = loads
        self._counts: TokenCounts | None = None
        self._known: ServerCapabilities | None = None
        self._refused: set[str] = set()
        self._found = _LearnedFeatures()
        self._said: tuple[str, ...] = ()

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        return (await self._introduced()).facts

    async def _introduced(self) -> ServerCapabilities:
        deadline = asyncio.get_running_loop().time() + self._ready_seconds
        known = await detect_capabilities(
            self._endpoint, self._model_name, self._on_status, deadline, self._known, loads=self._loads
        )
        if known is not self._known and self._loads and known.context.program:
            self._on_status(f"the server at {self._endpoint.address} loads {known.model_name}")
            reply = await load_model(self._endpoint, known.model_name, known.context, deadline)
            if reply is not None and reply.ok:
                before = known if known.context.tokens else None
                known = await detect_capabilities(self._endpoint, self._model_name, self._on_status, deadline, before)
        if known is not self._known:
            self._known, self._refused, self._found = known, set(), _LearnedFeatures()
            self._counts = TokenCounts(self._endpoint, known.tokenizer) if known.tokenizer else None
        facts = with_missing_features(self._bounded(self._found.told(known.facts, self._refused)))
        if facts.off != self._said:
            self._said = facts.off
            if facts.off:
                self._on_status(f"{self._endpoint.address}: {'; '.join(facts.off)}")
        return replace(known, facts=facts)

    def _bounded(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts with the context that the user states, if the server does not have a smaller one."""
        if self._stated_tokens and not 0 < facts.context_tokens <= self._stated_tokens:
            return replace(facts, context_tokens=self._stated_tokens, context_source=STATED)
        return facts

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer. Who stops early must close the iterator (`contextlib.aclosing`) to free the server.

        Raises `ModelUnavailable` (with the partial answer), `ModelRefused`, `ContextOverflow`.
        """
        known = self._known or await self._introduced()
        async with (
            self._turns.turn(known.slots, self._on_status),
            contextlib.aclosing(self._answer(request, known)) as items,
        ):
            async for item in items:
                yield item

    async def _answer(self, request: ModelRequest, known: ServerCapabilities) -> AsyncGenerator[AnswerItem]:
        waits_until = asyncio.get_running_loop().time() + request.answer_seconds
        patience = Backoff(self._endpoint.address, waits_until, self._on_status, patient=request.patient)
        dropped: set[str] = set()
        while True:
            body = request_body(request, known, _most_tokens(request, known), self._refused | dropped)
            deadline = Deadline(request.answer_seconds)
            async with self._endpoint.stream("POST", _ROUTE, body, deadline) as reply:
                if reply.status == HTTPStatus.OK:
                    reader = self._reader(request, known, held=GRAMMAR in body)
                    async with contextlib.aclosing(_read(reply, reader, deadline)) as items:
                        async for item in items:
                            if isinstance(item, AnswerEnd):
                                self._check_read(request, item.figures.prompt_tokens, known)
                            yield self._signed(item, known)
                    self._found.learn(reader, template_known=bool(known.facts.template_hash))
                    return
                fault = self._endpoint.fault(await reply.rest())
            if field := refused_field(fault, body):
                self._leave_out(field, fault, dropped)
                continue
            await patience.pause(fault, reply.retry_after_seconds)

    def _check_read(self, request: ModelRequest, told: int, known: ServerCapabilities) -> None:
        """Raise `ContextOverflow` if the server read less than it was sent: the answer is one to another prompt."""
        if not known.context.tells_whole_prompts:
            return
        size = known.facts.context_tokens
        least = self._found.readings.missing(
            request, told, counted=known.tokenizer is not None, whole=bool(size or known.context.program)
        )
        if not least:
            return
        # What is read of a cut prompt may be less than what would have fitted.
        self._found.read_tokens = 0 if size else told
        raise ContextOverflow(
            f"the server at {self._endpoint.address} cut the prompt: it read {told:,} tokens of at least {least:,}",
            prompt_tokens=least,
            context_tokens=size or told,
            cut=True,
            advice=CUT_ADVICE,
        )

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        if self._known is None:
            await self._introduced()
        if self._counts is None:
            return (0,) * len(texts)
        return await self._counts.of(texts)

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the tokens of a text, empty if the server does not list them; raise `ModelError`."""
        known = self._known or await self._introduced()
        if self._counts is None or not known.facts.takes_grammar:
            return ()
        return await self._counts.tokens_of(text)

    async def close(self) -> None:
        await self._endpoint.close()

    def _leave_out(self, field: str, fault: ServerError, dropped: set[str]) -> None:
        """Remember a field that the server rejects; a grammar that it cannot read is left out of this request only."""
        if field == GRAMMAR and is_grammar_error(fault):
            dropped.add(field)
            what = "cannot read this grammar; the request is repeated without it"
        else:
            self._refused.add(field)
            what = f"rejects `{field}`; it is left out from now on"
        self._on_status(f"{self._endpoint.address} {what} ({fault.message})")

    def _signed(self, item: AnswerItem, known: ServerCapabilities) -> AnswerItem:
        if not isinstance(item, AnswerEnd):
            return item
        return replace(item, endpoint=known.facts.endpoint, model=known.facts.model)

    def _reader(self, request: ModelRequest, known: ServerCapabilities, *, held: bool) -> AnswerReader:
        return AnswerReader(
            self._endpoint.address,
            _most_tokens(request, known),
            secret=self._endpoint.secret,
            held=held,
            thinks=known.thinking is not Thinking.NONE,
            opened=self._found.opened,
        )


class _LearnedFeatures(Struct):
    """Features that answers revealed: cache figures, thoughts, and answers that start inside a thought.

    `read_tokens` is what the server read of a prompt that it cut, if it does not state its context.
    """

    tells_cache: bool | None = None
    thinks: bool = False
    opened: bool = False
    readings: PromptReadings = field(default_factory=PromptReadings)
    read_tokens: int = 0

    def learn(self, reader: AnswerReader, *, template_known: bool) -> None:
        self.tells_cache = reader.cache_seen
        # With a known template this was detected before; marks that a model writes by chance prove nothing.
        self.opened |= reader.opened and not template_known
        self.thinks |= reader.thought_seen or self.opened

    def told(self, facts: ModelFacts, refused: Collection[str]) -> ModelFacts:
        """Return the facts with what was learned since."""
        if self.read_tokens:
            facts = replace(facts, context_tokens=self.read_tokens, context_source=MEASURED)
        return replace(
            facts,
            takes_grammar=facts.takes_grammar and GRAMMAR not in refused,
            tells_cache=facts.tells_cache if self.tells_cache is None else self.tells_cache,
            thinks=facts.thinks or self.thinks,
        )


def _most_tokens(request: ModelRequest, known: ServerCapabilities) -> int:
    """Return the token limit of a request: a thought may be as long as the answer."""
    return request.answer_tokens * (1 if known.thinking is Thinking.NONE else 2)


async def _read(reply: StreamedReply, reader: AnswerReader, deadline: Deadline) -> AsyncGenerator[AnswerItem]:
    if reply.is_json:
        for item in reader.whole((await reply.rest()).json or {}):
            yield item
    read_tokens = 0
    while not reader.done:
        try:
            data = await reply.next()
        except ModelUnavailable as lost:
            if reader.finished:
                break
            raise ModelUnavailable(str(lost), advice=lost.advice, partial=reader.partial) from lost
        if not data:
            break
        for item in reader.feed(data):
            if isinstance(item, PromptProgress) and item.processed_tokens > read_tokens:
                read_tokens = item.processed_tokens
                deadline.moved()
            yield item
    for item in reader.end():
        yield item


def with_missing_features(facts: ModelFacts) -> ModelFacts:
    """Return the facts with `off` set to the features that are missing."""
    return replace(facts, off=tuple(_lacks(facts)))


def _lacks(facts: ModelFacts) -> Iterator[str]:
    if not facts.takes_grammar:
        yield "answers cannot be held to a grammar; they are still checked"
    if not facts.counts_tokens:
        yield "tokens are not counted"
    if not facts.context_tokens:
        yield "the context size is unknown"
    if not facts.tells_cache:
        yield "the share of the prompt that came from the cache is unknown"


def request_body(
    request: ModelRequest, known: ServerCapabilities, most_tokens: int, without: Collection[str]
) -> dict[str, object]:
    """Return the body of a chat completion, streamed, without the fields `without`."""
    sampling = request.sampling
    body: dict[str, object] = {
        "messages": [{"role": message.role.value, "content": message.text} for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": request.seed,
        _LONGER_NAME if "max_tokens" in without else "max_tokens": most_tokens,
    }
    if known.model_name:
        body["model"] = known.model_name
    chosen: dict[str, object] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    own: dict[str, object] = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        # Of the tokens that an answer may have, its thought gets half at most.
        THINKING_BUDGET: None
        if sampling.thinking_budget_tokens is None
        else min(sampling.thinking_budget_tokens, request.answer_tokens),
        "cache_prompt": not request.exact,
        "return_progress": True,
        GRAMMAR: with_thought(request.grammar, known.thinking) if request.grammar else None,
    }
    chosen |= {name: value for name, value in own.items() if name in known.fields}
    body |= {name: value for name, value in chosen.items() if value is not None}
    return {name: value for name, value in body.items() if name not in without}


def refused_field(fault: ServerError, body: Collection[str]) -> str:
    """Return the optional field that the server refuses by name; empty if it names none."""
    return next((field for field in _OPTIONAL if field in body and fault.blames(field)), "")


def is_grammar_error(fault: ServerError) -> bool:
    """Return True if the server supports grammars and cannot read this one."""
    return bool(_THIS_GRAMMAR.search(fault.message))
