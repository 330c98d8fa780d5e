"""What a grammar for edits costs per token, of a model whose choices it never likes and of one whose it does.

The time is that of the server's process alone, so that others on the machine show less in it; on one that is busy
with much else it is still several times that on a quiet one, for free text as well. Answers are asked for in turn with
and without the grammar, over the same prompt, so compare the figures of one run: the one sentence is what llama.cpp
itself takes to hold a token to any grammar.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from statistics import median

import psutil
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.server_answers import number_at, object_at
from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.grammar_rules import literal
from agent_workbench.core.patch.hunk_rules import editable, text_lines
from agent_workbench.core.patch.values import FileContent, PatchBounds
from bench.figures import Figure
from scripts.tiny_model import make_vocabulary, spelled

Serving = Callable[[int, int], AbstractAsyncContextManager[tuple[Endpoint, int]]]
Say = Callable[[str], None]
Body = dict[str, object]

_CONTEXT_TOKENS = 32_768
_SECONDS = 600.0
_SEEDS = 3
_REPEATS = 3
_MOST_SECONDS = 45.0
"""How long one comparison may take: once each seed was asked, it ends with what there is."""
_WIDTH = 450
_HEADERS = 150


class Speeds(Struct, frozen=True):
    """Tokens a second of the server's time, what it costs to read the grammar, and milliseconds a token with the large
    vocabulary.

    `forced`: of a random model, whose own choice hardly ever fits; `fitting`: of one whose choice nearly always does;
    `sentence`: with the simplest grammar there is, that of one sentence, which is what any grammar costs. With the
    large vocabulary these are over `tokens` of an answer, the fitting ones over `fitting_tokens`; `rounds` is how often
    the least asked was asked.
    """

    lines: int
    grammar_bytes: int
    free_tokens_per_second: float
    grammar_tokens_per_second: float
    grammar_once_ms: float
    vocabulary: int = 0
    free_ms: float = 0.0
    forced_ms: float = 0.0
    sentence_ms: float = 0.0
    liked_free_ms: float = 0.0
    fitting_ms: float = 0.0
    tokens: int = 0
    fitting_tokens: int = 0
    rounds: int = 0

    def told(self) -> dict[str, float]:
        """Return the figures by name, with what follows from them."""
        told = {name: round(value, 3) for name, value in to_builtins(self).items()}
        told["ratio"] = round(self.grammar_tokens_per_second / self.free_tokens_per_second, 3)
        if self.vocabulary:
            told["added_ms_forced"] = round(self.forced_ms - self.free_ms, 3)
            told["added_ms_sentence"] = round(self.sentence_ms - self.free_ms, 3)
            told["added_ms_fitting"] = round(self.fitting_ms - self.liked_free_ms, 3)
        return told

    def figures(self) -> list[Figure]:
        """Return them for a report."""
        told = self.told()
        found = [
            Figure(f"a grammar of {self.lines} lines", self.grammar_bytes / 1000, "kB"),
            Figure("reading it, once an answer", max(0.0, told["grammar_once_ms"]), "ms"),
            Figure("tokens a second with it, of free text", told["ratio"], "times", "0.8 or more"),
        ]
        if self.vocabulary:
            of = f"of {self.vocabulary:,} tokens"
            found.append(
                Figure(f"added to a token {of}, all forced", max(0.0, told["added_ms_forced"]), "ms", "12 or less")
            )
            found.append(
                Figure(f"added to a token {of}, one sentence", max(0.0, told["added_ms_sentence"]), "ms", "the least")
            )
            found.append(
                Figure(f"added to a token {of}, own choice fits", max(0.0, told["added_ms_fitting"]), "ms", "below 1")
            )
        return found


async def measure_speeds(serving: Serving, lines: int, vocabulary: int, tokens: int, say: Say) -> Speeds:
    """Return the costs at `lines` offered lines; the large vocabulary is left out where it is 0.

    `say` gets a line whenever something is done.
    """
    code = _code(lines)
    grammar = _grammar(code)
    say("speed, the tiny vocabulary")
    async with serving(0, _CONTEXT_TOKENS) as (endpoint, pid):
        (free, held), rounds = await _costs(_Asked(endpoint, pid, say), [_body(code), _body(code, grammar)], tokens)
    once_ms = held.once_ms - free.once_ms
    small = Speeds(lines, len(grammar), 1000 / free.token_ms, 1000 / held.token_ms, once_ms, rounds=rounds)
    if not vocabulary:
        return small
    # It likes to remove lines of one letter, and these are. Free it says nothing else, held it is seldom stopped.
    likings = [[make_vocabulary().tokens.index(spelled(text)), bias] for text, bias in (("a", 60.0), ("-", 50.0))]
    biased: Body = {"logit_bias": likings, "temperature": 0}
    # A token takes ten times as long there, so fewer of them tell as much.
    few, more = max(20, tokens // 10), max(20, tokens // 4)
    say(f"a model of {vocabulary:,} tokens is made and loaded")
    async with serving(vocabulary, _CONTEXT_TOKENS) as (endpoint, pid):
        asked = _Asked(endpoint, pid, say)
        say(f"speed, {vocabulary:,} tokens, all forced")
        bodies = [_body(code), _body(code, grammar), _body(code, _sentence(code))]
        (plain, forced, sentence), first = await _costs(asked, bodies, few)
        say(f"speed, {vocabulary:,} tokens, own choice fits")
        bodies = [_body([]) | biased, _body([], _grammar(_liked(lines))) | biased]
        # A diff begins with its headers, which no liking spells: they are over when the shorter answer is.
        (liked_free, fitting), second = await _costs(asked, bodies, more, _HEADERS)
    return replace(
        small,
        vocabulary=vocabulary,
        free_ms=plain.token_ms,
        forced_ms=forced.token_ms,
        sentence_ms=sentence.token_ms,
        liked_free_ms=liked_free.token_ms,
        fitting_ms=fitting.token_ms,
        tokens=few,
        fitting_tokens=more,
        rounds=min(rounds, first, second),
    )


class _Asked(Struct, frozen=True):
    """A server, the number of its process, and who is told how far it is."""

    endpoint: Endpoint
    pid: int
    say: Say


class _Cost(Struct, frozen=True):
    """What an answer costs once (its grammar is read), and each of its tokens."""

    once_ms: float
    token_ms: float


async def _costs(asked: _Asked, bodies: list[Body], tokens: int, short: int = 0) -> tuple[list[_Cost], int]:
    """Return what answers to these bodies cost, by how much more a longer one costs, and how often they were asked.

    `short` is how long the shorter is, if not a quarter of the `tokens` that the longer has more.
    """
    short = short or max(20, tokens // 4)
    sized = [body | {"n_predict": size} for body in bodies for size in (short, short + tokens)]
    found, rounds = await _in_turn(asked, sized)
    costs = []
    for less, more in zip(found[::2], found[1::2], strict=True):
        token_ms = max(1e-6, (more - less) / tokens)
        costs.append(_Cost(less - short * token_ms, token_ms))
    return costs, rounds


async def _in_turn(asked: _Asked, bodies: list[Body]) -> tuple[list[float], int]:
    """Return for each body the milliseconds of its answer, the least of each seed, their median; and the rounds.

    The last token of the prompt is read again for every answer; in what a longer one costs more it is not counted.
    """
    found = [[math.inf] * _SEEDS for _ in bodies]
    clock, rounds = asyncio.get_running_loop().time, 0
    until = clock() + _MOST_SECONDS
    while rounds < _SEEDS * _REPEATS and (rounds < _SEEDS or clock() < until):
        seed = rounds % _SEEDS
        rounds += 1
        asked.say(f"  round {rounds} of {_SEEDS * _REPEATS}")
        for body, milliseconds in zip(bodies, found, strict=True):
            deadline = clock() + _SECONDS
            # Asked for nothing, the server reads the prompt: what follows finds it in the cache.
            await asked.endpoint.post("/completion", body | {"n_predict": 0, "grammar": ""}, deadline)
            before = _busy_seconds(asked.pid)
            reply = await asked.endpoint.post("/completion", body | {"seed": seed}, deadline)
            spent = _busy_seconds(asked.pid) - before
            timings = object_at(reply.json or {}, "timings")
            if not reply.ok or not number_at(timings, "predicted_n"):
                raise RuntimeError(f"the server gave no answer: {reply.body[:300]!r}")
            milliseconds[seed] = min(milliseconds[seed], spent * 1000)
    return [median(each) for each in found], rounds


def _busy_seconds(pid: int) -> float:
    """Return how long a process was at work, where the machine tells to the nanosecond, else to the hundredth."""
    tasks = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    if tasks:
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
    return sum(psutil.Process(pid).cpu_times()[:2])


def _body(lines: list[str], grammar: str = "") -> Body:
    text = "Code that may matter:\n\n" + "\n".join(lines) + "\n\nChange it.\n"
    body: Body = {"prompt": text, "cache_prompt": True, "ignore_eos": True}
    return body | {"grammar": grammar} if grammar else body


def _grammar(lines: list[str]) -> str:
    text = text_lines(FileContent("".join(f"{line}\n" for line in lines).encode()))
    assert text is not None
    file = editable("code.py", text, range(len(text)))
    return "\n".join(["root ::= diff", *diff_rules(EditScope((file,), ("code.py",), PatchBounds())), ""])


def _sentence(lines: list[str]) -> str:
    return f"root ::= {literal(chr(10).join(lines))}\n"


def _code(lines: int) -> list[str]:
    """Return so many lines of the standard library."""
    import argparse

    return Path(argparse.__file__).read_text(encoding="utf-8").split("\n")[200 : 200 + lines]


def _liked(lines: int) -> list[str]:
    return ["a" * _WIDTH + f"{number:03}" for number in range(lines)]
