"""`agent replay`: replay of a past session on the screen, or a re-run compared with its record."""

import argparse
import asyncio
import os
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import event_number
from agent_workbench.cli.output import say, say_json
from agent_workbench.cli.verbs.tui import check_terminal, open_workbench
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest

if TYPE_CHECKING:
    from agent_workbench.core.history.replay_marks import ReproducedPrompt


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("session", nargs="?", default="", help="its first or last letters (default: the newest)")
    verb.add_argument("--at", metavar="SEQ", help="open it at this event (`agent sessions show` numbers them)")
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--rerun", action="store_true", help="build every prompt again from the journal and compare")
    how.add_argument("--against", metavar="MODEL", help="ask this GGUF file, address or endpoint every prompt again")
    verb.add_argument("--json", action="store_true", help="with --rerun or --against: a line of JSON for each prompt")


def execute(options: argparse.Namespace) -> int:
    """Open the replay, or re-run the session."""
    invocation = Invocation(Path.cwd(), os.environ, {})
    at = event_number(options.at)
    if at is not None and (options.rerun or options.against is not None):
        raise UsageError("--at opens a session to be seen", advice="leave --rerun and --against out")
    if options.rerun:
        return asyncio.run(rerun(invocation, options.session, Teller(as_json=options.json)))
    if options.against is not None:
        return asyncio.run(against(invocation, options.session, options.against, Teller(as_json=options.json)))
    if options.json:
        raise UsageError("--json tells of a session that is made again", advice="say --rerun or --against MODEL too")
    check_terminal("agent replay", "`agent sessions show` prints a session, `agent replay --rerun` makes it again")

    return open_workbench(invocation, SessionRequest(OpenMode.REPLAY, options.session, at))


async def rerun(invocation: Invocation, session: str, teller: "Teller") -> int:
    """Rebuild every prompt and parse every answer again; stop at the first difference."""
    from agent_workbench.api.session_queries import rerun_session

    for prompt in await rerun_session(invocation, session):
        if not teller.tell(prompt):
            break
    return teller.sum_up()


async def against(invocation: Invocation, session: str, model: str, teller: "Teller") -> int:
    """Ask a live model every prompt again; stop at the first different answer."""
    from agent_workbench.api.session_queries import session_against
    from agent_workbench.cli.questions import Remarks

    async with aclosing(session_against(invocation, session, model, Remarks())) as prompts:
        async for prompt in prompts:
            if not teller.tell(prompt):
                break
    return teller.sum_up()


class Teller:
    """Printer and counter of compared prompts."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._told = self._compared = self._same = 0

    def tell(self, prompt: "ReproducedPrompt") -> bool:
        """Print the comparison of a prompt or its answer with the record; return True if they are equal."""
        same = prompt.difference is None
        self._told += 1
        self._compared += prompt.compared
        self._same += prompt.compared and same
        if self._as_json:
            say_json(_as_json(prompt))
            return same
        for line in _lines(prompt):
            say(line)
        return same

    def sum_up(self) -> int:
        """Print the totals; return the exit code."""
        if self._as_json:
            say_json({"prompts": self._told, "compared": self._compared, "identical": self._same})
        else:
            rest = self._told - self._compared
            apart = f", {rest} without an answer to compare" if rest else ""
            say(f"{self._told} prompt{'' if self._told == 1 else 's'}, {self._same} identical{apart}")
        return ExitCode.DONE if self._same == self._compared else ExitCode.DIFFERS


def _lines(prompt: "ReproducedPrompt") -> Iterator[str]:
    built, difference = prompt.built, prompt.difference
    said = "not compared" if not prompt.compared else "identical" if difference is None else "DIFFERS"
    aside = f"  ({prompt.remark})" if prompt.remark else ""
    yield f"{prompt.number:>4}  step {built.step:<3} {built.purpose:<9} {built.tokens:>7,} tokens  {said}{aside}"
    if difference is not None:
        yield f"      {difference.what}{f', in the part {difference.part}' if difference.part else ''}"
        yield from (f"      {line}" for line in difference.diff.splitlines())


def _as_json(prompt: "ReproducedPrompt") -> dict[str, object]:
    built, difference = prompt.built, prompt.difference
    line: dict[str, object] = {"prompt": prompt.number, "seq": prompt.seq, "step": built.step}
    line |= {"purpose": built.purpose, "tokens": built.tokens, "compared": prompt.compared}
    line |= {"identical": prompt.compared and difference is None, "remark": prompt.remark}
    return line if difference is None else line | to_builtins(difference)
