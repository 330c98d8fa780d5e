"""Speed of a model server by its threads: one, all that spin while they wait, and all that sleep.

`BENCH_MODEL` names a GGUF file; without it a random model of 120,000 tokens is served. The servers are asked in turn,
each time with a prompt of its own, so the ratios hold on a busy machine too; the load is told.
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import median

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.server_answers import object_at, real_at
from agent_workbench.core.settings.models import ServingSettings
from bench.figures import Figure
from scripts.tiny_model import write_tiny_gguf

VARIABLE = "BENCH_MODEL"
WORDS = ("def", "area", "width", "height", "return", "sum", "value", "index", "file", "test", "case", "line", "word")
_SECONDS = 600.0
# Threads, and how often one looks before it sleeps: as often as the OpenMP of GCC does by itself, or not at all.
_KINDS: Mapping[str, tuple[int, str]] = {
    "one thread": (1, "0"),
    "all threads, spinning": (os.cpu_count() or 1, "300000"),
    "all threads, sleeping": (os.cpu_count() or 1, "0"),
}


def measure(rounds: int = 4, tokens: int = 24, words: int = 60, vocabulary: int = 120_000) -> list[Figure]:
    """Return tokens a second written and read with each kind of threads, as times of one thread's."""
    with tempfile.TemporaryDirectory() as folder:
        given = os.environ.get(VARIABLE, "")
        model = Path(given) if given else Path(folder) / "random.gguf"
        if not given:
            write_tiny_gguf(model, vocabulary_tokens=vocabulary)
        found = asyncio.run(_speeds(model, Path(folder), rounds, tokens, words))
    one, *others = found.items()
    figures = [Figure("load of the machine", os.getloadavg()[0], "processes")]
    for name, each in others:
        for at, what in enumerate(("written", "read")):
            ratios = [mine[at] / theirs[at] for mine, theirs in zip(each, one[1], strict=True)]
            figures.append(Figure(f"{name}: tokens {what} a second, of {one[0]}", median(ratios), "times"))
    return figures


async def _speeds(
    model: Path, folder: Path, rounds: int, tokens: int, words: int
) -> dict[str, list[tuple[float, float]]]:
    """Return for each kind of threads what each round wrote and read, in tokens a second."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in _KINDS}
    async with AsyncExitStack() as stack:
        endpoints: dict[str, Endpoint] = {}
        for kind, (threads, spins) in _KINDS.items():
            environ = {**os.environ, "GOMP_SPINCOUNT": spins}
            serving = ServingSettings(2_048, threads)
            server = EmbeddedServer(model, log=folder / f"{kind}.log", environ=environ, serving=serving)
            url, key = await server.start()
            stack.push_async_callback(server.stop)
            endpoints[kind] = Endpoint(url, key)
            stack.push_async_callback(endpoints[kind].close)
        for number in range(rounds):
            for kind in list(_KINDS) if number % 2 else list(_KINDS)[::-1]:
                found[kind].append(await _asked(endpoints[kind], f"{kind} {number}", tokens, words))
    return found


async def _asked(endpoint: Endpoint, seed: str, tokens: int, words: int) -> tuple[float, float]:
    text = " ".join(Random(seed).choices(WORDS, k=words))
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": f"{seed}. Write code: {text}"}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
    }
    reply = await endpoint.post("/v1/chat/completions", body, asyncio.get_running_loop().time() + _SECONDS)
    if not reply.ok:
        raise RuntimeError(f"the server refused the request: {reply.body[:300]!r}")
    timings = object_at(reply.json or {}, "timings")
    return real_at(timings, "predicted_per_second"), real_at(timings, "prompt_per_second")
