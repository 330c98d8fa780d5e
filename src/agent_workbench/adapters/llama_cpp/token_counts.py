"""Token counts from the server, by the route that it has, cached by text."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from http import HTTPStatus

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.server_answers import JsonObject, list_at, model_error, number_at

_PROBE = "one two three"

_MOST_REMEMBERED = 10_000
_AT_ONCE = 4
_SECONDS = 30.0


class Tokenizer(Struct, frozen=True):
    """A route for token counts: its path, the key for the text, and further fields.

    `context_tokens` is the context size in its answer (0: none).
    """

    kind: str
    route: str
    text_key: str
    more: tuple[tuple[str, str | bool], ...] = ()
    context_tokens: int = 0

    def body(self, text: str) -> dict[str, object]:
        """Return the request body for `text`."""
        return {self.text_key: text, **dict(self.more)}

    def count(self, said: JsonObject) -> int | None:
        """Return the token count in an answer, None if it has none."""
        if isinstance(said.get("tokens"), list):
            return len(list_at(said, "tokens"))
        return number_at(said, "count") if "count" in said else None


LLAMA_CPP = Tokenizer("llama.cpp", "/tokenize", "content")
VLLM = Tokenizer("vLLM", "/tokenize", "prompt", (("add_special_tokens", False),))
LLAMA_CPP_PYTHON = Tokenizer("llama-cpp-python", "/extras/tokenize", "input")


async def find_tokenizer(endpoint: Endpoint, model_name: str, deadline: float) -> Tokenizer | None:
    """Return the server's route for token counts, None if it has none; raise `ModelError` if the server fails."""
    for known in (LLAMA_CPP, VLLM, LLAMA_CPP_PYTHON):
        tried = replace(known, more=(*known.more, ("model", model_name))) if model_name else known
        reply = await endpoint.post(tried.route, tried.body(_PROBE), deadline)
        said = reply.json or {}
        if reply.ok and tried.count(said):
            return replace(tried, context_tokens=number_at(said, "max_model_len"))
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR and reply.status != HTTPStatus.NOT_IMPLEMENTED:
            raise model_error(endpoint.fault(reply), endpoint.address)
    return None


class Token(Struct, frozen=True):
    """A token: its id in the vocabulary, and its bytes, which need not be whole characters."""

    id: int
    data: bytes


class TokenCounts:
    """Token counts over `tokenizer`'s route; the newest 10,000 are cached by the text's hash."""

    def __init__(self, endpoint: Endpoint, tokenizer: Tokenizer) -> None:
        self._endpoint = endpoint
        self._tokenizer = tokenizer
        self._known: OrderedDict[bytes, int] = OrderedDict()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def of(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the token count of each text; raise `ModelError`."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        counts = {key: self._known[key] for key in keys if key in self._known}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in counts}
        try:
            async with asyncio.TaskGroup() as group:
                asked = {key: group.create_task(self._ask(text)) for key, text in missing.items()}
        except ExceptionGroup as several:
            # One failure cancels the others; the first is the cause.
            raise several.exceptions[0] from None
        counts |= {key: task.result() for key, task in asked.items()}
        for key in keys:
            self._known[key] = counts[key]
            self._known.move_to_end(key)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return tuple(counts[key] for key in keys)

    async def _ask(self, text: str) -> int:
        if not text:
            return 0
        return self._tokenizer.count(await self._tokens(text)) or 0

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the tokens of a text, empty if the server does not list them; raise `ModelError`."""
        told = list_at(await self._tokens(text, with_pieces=True), "tokens")
        tokens = tuple(Token(number_at(each, "id"), _piece(each)) for each in told if isinstance(each, dict))
        return tokens if b"".join(token.data for token in tokens) == text.encode("utf-8", "replace") else ()

    async def _tokens(self, text: str, *, with_pieces: bool = False) -> JsonObject:
        body = self._tokenizer.body(text) | ({"with_pieces": True} if with_pieces else {})
        async with self._turn:
            deadline = asyncio.get_running_loop().time() + _SECONDS
            reply = await self._endpoint.post(self._tokenizer.route, body, deadline)
        if not reply.ok:
            raise model_error(self._endpoint.fault(reply), self._endpoint.address)
        return reply.json or {}


def _piece(token: JsonObject) -> bytes:
    """Return a token's bytes: servers send text, or numbers if the bytes are not whole characters."""
    piece = token.get("piece")
    if isinstance(piece, str):
        return piece.encode("utf-8", "replace")
    return bytes(byte for byte in list_at(token, "piece") if isinstance(byte, int) and 0 <= byte <= 255)
