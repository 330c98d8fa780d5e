"""`agent completion`: scripts for shells, and the words that Tab offers: verbs, flags, tasks, sessions, proposals.

References of proposals are not offered: a decision needs a look at what `agent inbox show` prints.
"""

import argparse
import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path

import argcomplete
from argcomplete.shell_integration import shellcode

from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.invocation import Invocation

SHELLS = ("bash", "zsh", "fish")
INSTALL = """\
install it:
  bash: echo 'eval "$(agent completion bash)"' >> ~/.bashrc
  zsh:  echo 'eval "$(agent completion zsh)"' >> ~/.zshrc      (after compinit)
  fish: agent completion fish > ~/.config/fish/completions/agent.fish"""

Names = Callable[[Invocation], Coroutine[None, None, list[str]]]


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    verb.epilog = INSTALL
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    verb.set_defaults(execute=print_script)


def print_script(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    say(shellcode(["agent"], shell=options.shell).strip())
    return ExitCode.DONE


def complete(root: argparse.ArgumentParser) -> None:
    """Write the words that complete the line in `COMP_LINE`, and end the process. Nothing of the repository is run."""
    for verb, names in (("run", _tasks), ("merge", _tasks), ("rules", _tasks), ("inbox", _proposals)):
        _offer(root, verb, names, ("task", "id"))
    for verb in ("tui", "run", "replay", "sessions", "chat"):
        _offer(root, verb, _sessions, ("session", "first", "second"))
    argcomplete.autocomplete(root, always_complete_options=False)


def _offer(root: argparse.ArgumentParser, verb: str, names: Names, arguments: tuple[str, ...]) -> None:
    """Offer names for these arguments of a verb and of those below it."""
    for action in _actions(root, verb):
        if action.dest in arguments:
            action.completer = lambda names=names, **_: _found(names)  # type: ignore[attr-defined]  # argcomplete's way


def _actions(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[argparse.Action]:
    for action in parser._actions:  # argparse has no other way
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                if verb in {"", name}:
                    yield from _actions(below)
        elif not verb:
            yield action


def _found(names: Names) -> list[str]:
    with suppress(WorkbenchError):  # outside of a repository there is nothing to offer
        return asyncio.run(names(Invocation(Path.cwd(), os.environ, {})))
    return []


async def _tasks(invocation: Invocation) -> list[str]:
    from agent_workbench.api.plans import checked_plan

    return [task.id for task in (await checked_plan(invocation)).tasks]


async def _sessions(invocation: Invocation) -> list[str]:
    from agent_workbench.api.records.session_queries import session_summaries

    return [summary.id for summary in await session_summaries(invocation)]


async def _proposals(invocation: Invocation) -> list[str]:
    from agent_workbench.api.sessions.inbox import opened_inbox

    async with opened_inbox(invocation) as inbox:
        return [item.id for item in await inbox.items()]
