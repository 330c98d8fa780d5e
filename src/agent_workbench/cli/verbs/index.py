"""`agent index`: status, build, removal and evaluation of the code search's index."""

import argparse
import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.cli.questions import ProgressLine
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation
from agent_workbench.views.code import index_words

if TYPE_CHECKING:
    from agent_workbench.api.code_search import IndexFacts

_NONE_SAVED = "none saved; `agent index build` makes it, and so does a search (one of fewer than 50 files is not saved)"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=status)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    for name, summary, execute in (
        ("status", "show where the index is stored and how large it is", status),
        ("build", "build the index of this repository now", build),
        ("clear", "remove the index of this repository; it is rebuilt when needed", clear),
    ):
        each = add_verb(below, name, summary, execute)
        each.add_argument("--json", action="store_true", help="print it as one line of JSON")
        if execute is clear:
            each.add_argument(
                "--all", action="store_true", help="the indexes of all repositories, with all parsed files"
            )
    measuring = add_verb(below, "eval", "evaluate the search on the past commits of this repository", evaluate)
    measuring.add_argument(
        "--commits",
        type=whole_number(1, 10_000),
        default=300,
        metavar="N",
        help="number of recent commits used as queries (300)",
    )
    measuring.add_argument("--json", action="store_true", help="print it as one line of JSON")
    verb.set_defaults(json=False)


def status(options: argparse.Namespace) -> int:
    """Print the stored index and cache."""
    from agent_workbench.api.code_search import index_facts

    facts = asyncio.run(index_facts(_here()))
    if options.json:
        say_json(_as_json(facts))
        return ExitCode.DONE
    own = [each for each in facts.cache.snapshots if each.root == facts.root]
    held = ", ".join(index_words(facts.status))
    saved = [f"{held}; {_size(each.bytes)}, saved {_ago(time.time() - each.saved)}" for each in own]
    say(f"repository  {facts.root}")
    say(f"its index   {saved[0] if saved else _NONE_SAVED}")
    if not saved and held:
        say(f"            {held}")
    for line in _cache_lines(facts):
        say(line)
    return ExitCode.DONE


def build(options: argparse.Namespace) -> int:
    """Build the index and show its progress."""
    from agent_workbench.api.code_search import build_index

    started = time.monotonic()
    with ProgressLine() as line:
        facts = asyncio.run(build_index(_here(), line.show_index))
    seconds = time.monotonic() - started
    if not facts.cache.writable and not facts.status.unsaved:
        say_aside(f"nothing of it is kept: the cache cannot be written at {facts.cache.folder}")
    if options.json:
        say_json({**_as_json(facts), "seconds": round(seconds, 3)})
    else:
        say(f"{' · '.join(index_words(facts.status)) or 'there is nothing to index here'}  in {seconds:.1f} s")
        for line_of_cache in _cache_lines(facts):
            say(line_of_cache)
    return ExitCode.DONE


def clear(options: argparse.Namespace) -> int:
    """Remove the stored index."""
    from agent_workbench.api.code_search import clear_index

    removed = asyncio.run(clear_index(_here(), everything=options.all))
    if options.json:
        say_json({"removed_bytes": removed})
    else:
        say(f"{_size(removed)} removed")
    return ExitCode.DONE


def evaluate(options: argparse.Namespace) -> int:
    """Evaluate the search and print a table beside plain BM25 and plain text search."""
    from agent_workbench.api.code_search import evaluate_search

    with ProgressLine() as line:
        found = asyncio.run(evaluate_search(_here(), options.commits, line.show))
    if options.json:
        say_json(to_builtins(found))
        return ExitCode.DONE
    say(f"{found.strict[0].questions} of {found.all[0].questions} messages of past commits name no file they changed;")
    say(f"each asks the {found.files:,} files of {found.base[:10]}, from before all of them, for the files it changed.")
    say("")
    say(f"{'':<24}{'names no file':>18}{'all':>18}")
    say(f"{'':<24}{'R@10':>10}{'MRR':>8}{'R@10':>10}{'MRR':>8}{'a question':>14}")
    for strict, every in zip(found.strict, found.all, strict=True):
        figures = (
            f"{strict.recall:>10.3f}{strict.reciprocal_rank:>8.3f}{every.recall:>10.3f}{every.reciprocal_rank:>8.3f}"
        )
        say(f"{every.method:<24}{figures}{every.seconds * 1000:>11.1f} ms")
    return ExitCode.DONE


def _here() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})


def _cache_lines(facts: "IndexFacts") -> tuple[str, ...]:
    cache = facts.cache
    kinds = ", ".join(f"{kind} {_size(many)}" for kind, many in cache.bytes_by_kind.items() if many)
    repos = len(cache.snapshots)
    return (
        f"cache       {cache.folder}",
        f"            {_size(cache.total_bytes)} for all repositories{f': {kinds}' if kinds else ''}",
        f"            {cache.blobs:,} contents of files parsed, {repos} saved index{'' if repos == 1 else 'es'}",
    )


def _as_json(facts: "IndexFacts") -> dict[str, object]:
    status, cache = facts.status, facts.cache
    return {
        "root": facts.root,
        "index": {
            "complete": status.complete,
            "files": status.files,
            "chunks": status.chunks,
            "left_out": status.left_out,
            "binary": status.binary,
            "submodules": status.submodules,
            "unsaved": status.unsaved,
            "vectors": status.vectors,
        },
        "cache": {
            "folder": cache.folder,
            "bytes": dict(cache.bytes_by_kind),
            "blobs": cache.blobs,
            "indexes": [{"root": each.root, "bytes": each.bytes, "saved": each.saved} for each in cache.snapshots],
        },
    }


def _size(many: int) -> str:
    return f"{many / 1e6:.1f} MB" if many >= 100_000 else f"{many / 1e3:.1f} kB" if many >= 1_000 else f"{many} bytes"


def _ago(seconds: float) -> str:
    for length, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            many = int(seconds // length)
            return f"{many} {word}{'' if many == 1 else 's'} ago"
    return "just now"
