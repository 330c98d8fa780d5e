"""`agent search`: code search by words, names or a stack trace, with reasons; or the search for a playbook."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import whole_number
from agent_workbench.cli.output import say, say_aside, say_cells, say_json
from agent_workbench.cli.questions import ProgressLine
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.repo.retrieval import Chunk, CodeQuery
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.code import index_words, matched_words, reasons_of, share_bar, vector_words
from agent_workbench.views.reports.json_documents import results_document

if TYPE_CHECKING:
    from agent_workbench.api.code_search import Searched

MOST_CHARS = 200_000
BAR_CELLS = 20
SEARCH_EXIT = "exit code: 0 something fits; 1 nothing does"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.epilog = SEARCH_EXIT
    verb.add_argument("words", nargs="+", metavar="WORDS", help="words, names, path:line; `-` reads them from stdin")
    verb.add_argument(
        "--limit", type=whole_number(1, 1_000), default=10, metavar="N", help="maximum number of results (10)"
    )
    verb.add_argument("--failing", type=Path, metavar="FILE", help="a file with the output of a failed command")
    verb.add_argument("--explain", action="store_true", help="explain each result")
    verb.add_argument("--playbook", action="store_true", help="look for the one Ansible playbook that fits the words")
    verb.add_argument("--json", action="store_true", help="print the results with their code as one line of JSON")


def execute(options: argparse.Namespace) -> int:
    """Search, and print a line for each result, the best first."""
    from agent_workbench.api.code_search import search_checkout

    asked = sys.stdin.read(MOST_CHARS) if options.words == ["-"] else " ".join(options.words)
    query = CodeQuery(asked.strip(), _failing(options.failing))
    if not query.text and not query.failing:
        raise UsageError("the query is empty", advice="give words, names, or path:line; `-` reads them from stdin")
    invocation = Invocation(Path.cwd(), os.environ, {})
    if options.playbook:
        return _search_playbook(invocation, query.text, as_json=options.json)
    found = False

    def show(searched: "Searched") -> None:
        nonlocal found
        found = bool(searched.chunks)
        line.show("")
        _show(query, searched, options)

    with ProgressLine() as line:
        asyncio.run(search_checkout(invocation, query, options.limit, line.show_index, show))
    return ExitCode.DONE if found else ExitCode.FAILED


def _search_playbook(invocation: Invocation, words: str, *, as_json: bool) -> int:
    """Print the playbook that fits the words, else the nearest ones."""
    from agent_workbench.api.code_search import search_playbooks

    search = asyncio.run(search_playbooks(invocation, words))
    if as_json:
        say_json(to_builtins(search))
    elif search.found is not None:
        say(f"{sanitize_line(search.found.path)}  by {search.reason}")
    else:
        from agent_workbench.api.help_pages import page_address

        none_here = f"no playbook fits; this repository has none\n{page_address('how-to/ansible.md')}".strip()
        say_aside("no playbook fits; the nearest:" if search.nearest else none_here)
        for playbook, alike in search.nearest:
            likeness = f"  similarity {alike:.2f}" if alike is not None else ""
            say(f"{sanitize_line(playbook.path)}{likeness}")
    return ExitCode.DONE if search.found is not None else ExitCode.FAILED


def _show(query: CodeQuery, searched: "Searched", options: argparse.Namespace) -> None:
    if options.json:
        say_json(results_document(query, searched.chunks, searched.status))
    else:
        _print(searched.chunks, explain=options.explain)
    sys.stdout.flush()
    status = searched.status
    if not searched.chunks:
        say_aside(" · ".join(("nothing fits", *index_words(status))))
    elif not status.complete:
        say_aside(f"searched while {index_words(status)[0]}; the index is completed now, Ctrl-C leaves it to the next")
    elif status.unsaved:
        say_aside(f"the index cannot be saved, so each search rebuilds it: {status.unsaved}")
    if searched.chunks and (vectors := vector_words(status)):
        say_aside(vectors)


def _failing(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_CHARS)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", advice="name a file with a test's output"
        ) from None


def _print(chunks: tuple[Chunk, ...], *, explain: bool) -> None:
    """Print position, symbol and score: in columns on a terminal, else separated by tabs."""
    cells = [(sanitize_line(chunk.place), sanitize_line(chunk.symbol), f"{chunk.score:.2f}") for chunk in chunks]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(3)]
    for (place, symbol, score), chunk in zip(cells, chunks, strict=True):
        if sys.stdout.isatty():
            say(f"{place:<{widths[0]}}  {symbol:<{widths[1]}}  {score:>{widths[2]}}")
        else:
            say_cells((place, symbol, score))
        for reason in _reasons(chunk) if explain else ():
            say(reason)


def _reasons(chunk: Chunk) -> list[str]:
    reasons = reasons_of(chunk)
    if not reasons:
        return [f"    for {', '.join(matched_words(chunk))}"] if matched_words(chunk) else []
    shares = ((each, f"{share_bar(each.share, BAR_CELLS):<{BAR_CELLS}} {each.share:>4.0%}") for each in reasons)
    return [f"    {each.name:<9} {share}  {', '.join(each.words)}".rstrip() for each, share in shares]
