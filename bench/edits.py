"""`python -m bench.edits`: diffs that a random model writes under the grammar for files, and what becomes of them.

A real server and a model of random weights: whatever the grammar lets through, sooner or later it says. Each diff is
applied by the workbench and replayed by `bench.edit_walk`, which knows nothing of it. An answer that ended counts as
`exact` when both agree and as `wrong` when they do not; one that was cut is tried up to its last whole line and counts
as `cut` when that gives the same in both; `refused` are those that the workbench would not apply.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from msgspec import Struct, field, to_builtins

if __package__ in {None, ""}:  # run as a file: the repository's root is where `bench` is found
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.server_answers import first_at, object_at, text_at
from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.fit import fit_constrained_diff, fit_diff
from agent_workbench.core.patch.hunk_rules import editable, text_lines
from agent_workbench.core.patch.patch_reader import read_constrained_diff, read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.engine.answer.grammar import step_grammar
from agent_workbench.engine.answer.grammar_choice import offered_lines
from agent_workbench.engine.runtime.tool_context import PROTECTED_GLOBS
from agent_workbench.engine.tools.registry import builtin_specs
from bench.edit_sources import given_files, library_files, odd_files
from bench.edit_speed import Speeds, measure_speeds
from bench.edit_walk import BrokenPromise, replay
from bench.figures import Figure
from scripts.tiny_model import MESSAGE_END, make_vocabulary, spelled, write_tiny_gguf

BOUNDS = PatchBounds(protected_globs=PROTECTED_GLOBS)
CALL = "\nAction: write_diff\n"
CONTEXT_TOKENS = 8192
ANSWER_TOKENS = 700
_SECONDS = 120.0


class Offer(Struct, frozen=True):
    """Files, and the lines of them that an answer may name."""

    files: dict[str, bytes]
    chunks: tuple[Chunk, ...]

    def grammar(self) -> str:
        """Return the grammar that the workbench would send for a prompt that shows these lines."""
        editings = []
        for path in dict.fromkeys(chunk.path for chunk in self.chunks):
            text = text_lines(FileContent(self.files[path]))
            if text is not None:
                shown = set(offered_lines(text.bare, [each for each in self.chunks if each.path == path]))
                editings.append(editable(path, text, shown))
        rules = diff_rules(EditScope(tuple(editings), tuple(self.files), BOUNDS))
        return step_grammar(builtin_specs(("write_diff",)), rules)


class Counts(Struct):
    """Numbers of answers by outcome; `reasons` of the refused and wrong ones, `kinds` of the applied ones."""

    exact: int = 0
    cut: int = 0
    refused: int = 0
    refused_ended: int = 0
    wrong: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: str, why: str, *, ended: bool) -> None:
        setattr(self, verdict, getattr(self, verdict) + 1)
        self.refused_ended += ended and verdict == "refused"
        if verdict in {"refused", "wrong"}:
            self.reasons[f"{verdict}: {why}"] += 1


def an_offer(files: dict[str, bytes], lines: int, random: Random) -> Offer:
    """Return about `lines` lines of one file to four, in one to three pieces of each."""
    chosen = random.sample(sorted(files), min(len(files), random.randint(1, 4)))
    chunks: list[Chunk] = []
    for number, path in enumerate(chosen):
        content = files[path].decode("utf-8", "replace").split("\n")
        left = max(1, lines // len(chosen) if number else lines - (len(chosen) - 1) * (lines // len(chosen)))
        for _ in range(random.randint(1, 3)):
            size = min(len(content), max(1, random.randint(left // 2, left)))
            first = random.randint(0, len(content) - size)
            # The line numbers of a chunk may be out of date.
            told = first + random.choice((0, 0, 0, 3))
            chunks.append(Chunk(path, told + 1, told + size, "\n".join(content[first : first + size]), 0.0))
            left -= size
            if left <= 0:
                break
    return Offer(files, tuple(chunks))


def judge(text: str, files: dict[str, bytes], *, ended: bool) -> tuple[str, str]:
    """Return the outcome of a diff, and its reason or kind."""
    diff = text if ended else text[: text.rfind("\n") + 1]
    contents = {path: FileContent(data) for path, data in files.items()}
    try:
        got = _applied(diff, contents)
    except PatchError as refusal:
        return "refused", str(refusal)
    try:
        meant = replay(diff, files, ended=ended)
    except (BrokenPromise, IndexError, KeyError) as broken:
        return "wrong", f"{type(broken).__name__}: {broken}"
    if got != {path: data for path, data in meant.items() if data != files.get(path)}:
        return "wrong", "another result than the walk's"
    return ("exact" if ended else "cut"), ", ".join(sorted({_kind(files.get(p), d) for p, d in got.items()}))


def _applied(diff: str, contents: dict[str, FileContent]) -> dict[str, bytes | None]:
    """Return the files after a diff that was written under the grammar, as the workbench applies it."""
    read = read_constrained_diff(diff)
    fit = fit_constrained_diff(read, BOUNDS, contents, contents) if read is not None else None
    if fit is None:  # an answer that was cut
        loose = read_diff(diff, BOUNDS, contents)
        fit = fit_diff(loose, {path: contents.get(path) for path in loose.paths}, contents)
    return {change.path: change.after.data if change.after else None for change in fit.changes}


def _kind(before: bytes | None, after: bytes | None) -> str:
    if before is None:
        return "created"
    return "removed" if after is None else "changed"


class Asker:
    """Asks one server for answers."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        vocabulary = make_vocabulary()
        self._end = vocabulary.control[MESSAGE_END]
        self._tokens = {text: vocabulary.tokens.index(spelled(text)) for text in "\n +-@ab"}

    async def diff(self, grammar: str, seed: int, random: Random) -> tuple[str, bool]:
        """Return the diff of an answer, and whether it came to its end; each seed has likings of its own."""
        likings = {"\n": 6.0, "@": random.uniform(0, 6), "+": random.uniform(0, 5), "-": random.uniform(0, 5)}
        likings |= {" ": random.uniform(0, 5), "b": random.uniform(0, 4)}
        bias = [[self._tokens[text], value] for text, value in likings.items()]
        bias.append([self._end, random.uniform(-4, 1)])
        body = {
            "messages": [{"role": "user", "content": f"Change something ({seed})."}],
            "grammar": grammar,
            "seed": seed,
            "max_tokens": ANSWER_TOKENS,
            "logit_bias": bias,
        }
        deadline = asyncio.get_running_loop().time() + _SECONDS
        reply = await self._endpoint.post("/v1/chat/completions", body, deadline)
        choice = first_at(reply.json or {}, "choices")
        if not reply.ok:
            raise RuntimeError(f"the server refused the grammar: {reply.body[:300]!r}")
        text = text_at(object_at(choice, "message"), "content")
        return text.partition(CALL)[2], text_at(choice, "finish_reason") == "stop"


@asynccontextmanager
async def a_server(vocabulary: int = 0, context_tokens: int = CONTEXT_TOKENS) -> AsyncIterator[tuple[Endpoint, int]]:
    """Serve a random model; yield the server and its process's number."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "random.gguf"
        await asyncio.to_thread(write_tiny_gguf, model, vocabulary_tokens=vocabulary)
        serving = ServingSettings(context_tokens)
        server = EmbeddedServer(model, log=Path(folder) / "log", environ=os.environ, serving=serving)
        url, key = await server.start()
        endpoint = Endpoint(url, key)
        try:
            yield endpoint, server.pid
        finally:
            await endpoint.close()
            await server.stop()


async def count(files: dict[str, bytes], lines: int, seeds: Sequence[int], show: bool = False) -> Counts:
    """Return the outcomes of one answer for each seed, with 1 to `lines` offered lines."""
    counts = Counts()
    async with a_server() as (endpoint, _):
        asker = Asker(endpoint)
        for number, seed in enumerate(seeds):
            if number % max(1, len(seeds) // 10) == 0:
                progress(f"answer {number + 1} of {len(seeds)}")
            random = Random(seed)
            offered = max(1, round(lines * (number + 1) / len(seeds)))
            offer = an_offer(files, offered, random)
            text, ended = await asker.diff(await asyncio.to_thread(offer.grammar), seed, random)
            verdict, why = judge(text, files, ended=ended) if text else ("refused", "nothing was called")
            counts.add(verdict, why, ended=ended)
            if verdict in {"exact", "cut"}:
                counts.kinds[why] += 1
            if show and (verdict == "wrong" or (ended and verdict == "refused")):
                print(f"seed {seed}, {offered} lines, {verdict}: {why}\n{text}", file=sys.stderr)
    return counts


def the_files(paths: list[str]) -> dict[str, bytes]:
    """Return the given files, or some of the standard library and odd ones."""
    return given_files(paths) if paths else library_files(60, Random(7)) | odd_files()


def measure(seeds: int = 500, lines: int = 400, vocabulary: int = 120_000, tokens: int = 400) -> list[Figure]:
    """Return the figures of the bench at its full size."""
    counts = asyncio.run(count(the_files([]), lines, range(seeds)))
    measured = asyncio.run(speeds(min(lines, 300), vocabulary, tokens))
    figures = [
        Figure("answers that ended and apply exactly", counts.exact, "answers"),
        Figure("answers that ended and were refused", counts.refused_ended, "answers", "0"),
        Figure("cut answers that apply up to their last line", counts.cut, "answers"),
        Figure("cut answers that were refused", counts.refused - counts.refused_ended, "answers"),
        Figure("wrong", counts.wrong, "answers", "0"),
    ]
    return figures + measured.figures()


async def speeds(lines: int, vocabulary: int, tokens: int = 400) -> Speeds:
    """Return the cost of the grammar for `lines` offered lines, with a tiny and with a large vocabulary."""
    return await measure_speeds(a_server, lines, vocabulary, tokens, progress)


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Count and measure, print what came of it; 1 when something was wrong."""
    options = _parser().parse_args(arguments)
    counts = asyncio.run(count(the_files(options.files), options.lines, range(options.seeds), options.show))
    told = {key: value for key, value in to_builtins(counts).items() if key not in {"reasons", "kinds"}}
    told |= {"kinds": dict(counts.kinds.most_common()), "reasons": dict(counts.reasons.most_common(20))}
    if not options.no_speed:
        told["speeds"] = asyncio.run(speeds(min(options.lines, 300), options.vocabulary)).told()
    print(json.dumps(told, indent=2 if not options.json else None, ensure_ascii=False))
    return int(counts.wrong > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.edits", description=__doc__)
    parser.add_argument("--files", nargs="*", default=[], help="files to change (left out: the library's and odd ones)")
    parser.add_argument("--lines", type=int, default=400, help="the most lines that are offered at once")
    parser.add_argument("--seeds", type=int, default=500, help="how many answers")
    parser.add_argument("--vocabulary", type=int, default=0, help="measure with so many tokens as well, such as 120000")
    parser.add_argument("--json", action="store_true", help="on one line")
    parser.add_argument("--show", action="store_true", help="show what was wrong, or ended and was refused")
    parser.add_argument("--no-speed", action="store_true", help="count only")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
