"""Asks llama.cpp itself whether a sentence fits a grammar.

The sentences are made known beforehand: each becomes one token of a tiny model, so that the sampler takes or leaves it
as a whole.

    async with grammar_oracle(tmp_path, ["a", "b"]) as server:
        assert await fits(server, 'root ::= "a"', "a")
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.gbnf import with_prefix
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.server_answers import text_at
from agent_workbench.core.patch.grammar_rules import literal
from agent_workbench.core.settings.models import ServingSettings
from scripts.tiny_model import MESSAGE_END, make_vocabulary, write_tiny_gguf

# Put before each sentence and each grammar, or the empty text would often be the answer. Two letters: one is a token.
_MARK = "\x02\x02"
_SENTENCE_BIAS = 100.0
# Higher, so that an answer ends as soon as the grammar lets it.
_END_BIAS = 200.0
_SECONDS = 60.0


class BadGrammar(Exception):
    """The server will not take the grammar at all."""


class Oracle(Struct, frozen=True):
    """A server on a model that knows some sentences by heart: their tokens, and the token that ends an answer."""

    endpoint: Endpoint
    tokens: Mapping[str, int]
    end_token: int


@contextlib.asynccontextmanager
async def grammar_oracle(folder: Path, sentences: Sequence[str]) -> AsyncIterator[Oracle]:
    """Serve a model, written to `folder`, that knows `sentences`."""
    path = folder / "oracle.gguf"
    marked = [_MARK + sentence for sentence in sentences]
    tokens = await asyncio.to_thread(write_tiny_gguf, path, extra_tokens=marked)
    server = EmbeddedServer(path, log=folder / "oracle.log", environ=os.environ, serving=ServingSettings(512))
    url, key = await server.start()
    endpoint = Endpoint(url, key)
    try:
        known = {sentence: tokens[_MARK + sentence] for sentence in sentences}
        yield Oracle(endpoint, known, make_vocabulary().control[MESSAGE_END])
    finally:
        await endpoint.close()
        await server.stop()


async def fits(server: Oracle, grammar: str, sentence: str) -> bool:
    """Return whether `sentence`, one of those the server knows, is in the grammar's language; raise `BadGrammar`."""
    body = {
        "prompt": ".",
        "grammar": with_prefix(grammar, literal(_MARK)),
        "logit_bias": [[server.tokens[sentence], _SENTENCE_BIAS], [server.end_token, _END_BIAS]],
        "n_predict": 2,
        "temperature": 0,
        "cache_prompt": False,
    }
    reply = await server.endpoint.post("/completion", body, asyncio.get_running_loop().time() + _SECONDS)
    if not reply.ok:
        raise BadGrammar(f"{reply.body.decode()}\n{grammar}")
    said = reply.json or {}
    return text_at(said, "content") == _MARK + sentence and text_at(said, "stop_type") == "eos"
