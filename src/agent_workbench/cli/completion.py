"""`agent completion`: scripts for shells, and the words that Tab offers: verbs, flags, tasks, sessions, models.

References of proposals are not offered: a decision needs a look at what `agent inbox show` prints.
"""

import argparse
import asyncio
import os
import re
from collections.abc import Callable, Container, Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import argcomplete
from argcomplete.shell_integration import shellcode

from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.session_request import Invocation

SHELLS = ("bash", "zsh", "fish")
INSTALL = """\
install it:
  bash: echo 'eval "$(agent completion bash)"' >> ~/.bashrc
  zsh:  echo 'eval "$(agent completion zsh)"' >> ~/.zshrc      (after compinit)
  fish: agent completion fish > ~/.config/fish/completions/agent.fish"""

THIS_MACHINE = {"database.url_env": ""}
"""Settings for names: a key that is pressed does not wait for a database."""
_FILE = re.compile("FILE|FOLDER|GGUF|PATH|POLICY")

Names = Callable[[Invocation], Coroutine[None, None, list[str]]]


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    verb.epilog = INSTALL
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    verb.set_defaults(execute=print_script)


def print_script(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    say(shellcode(["agent"], use_defaults=False, shell=options.shell).strip())
    return ExitCode.DONE


def complete(root: argparse.ArgumentParser, hidden: Sequence[str] = ()) -> None:
    """Write the words that complete the line in `COMP_LINE`, and end the process. Nothing of the repository is run.

    Verbs that are `hidden` are not offered. Files are, where an argument takes one.
    """
    names = {
        _tasks: {
            "run": {"task"},
            "merge": {"task"},
            "rules": {"task"},
            "audit": {"task"},
            "inbox": {"task"},
            "plan": {"tasks", "after"},
        },
        _sessions: {each: {"session", "first", "second"} for each in ("tui", "run", "replay", "sessions", "chat")},
        _proposals: {"inbox": {"id"}},
        _models: {"model": {"name"}},
    }
    for action in _actions(root):
        if action.choices is None and not _FILE.search(str(action.metavar)):
            action.completer = lambda **_: ()  # type: ignore[attr-defined]  # argcomplete's way
    for found, by_verb in names.items():
        for verb, arguments in by_verb.items():
            _offer(root, verb, found, arguments)
    argcomplete.autocomplete(root, always_complete_options=False, exclude=hidden)


def _offer(root: argparse.ArgumentParser, verb: str, names: Names, arguments: Container[str]) -> None:
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
    with suppress(WorkbenchError, OSError):  # outside of a repository there is nothing to offer
        return asyncio.run(names(Invocation(Path.cwd(), os.environ, THIS_MACHINE)))
    return []


async def _tasks(invocation: Invocation) -> list[str]:
    from agent_workbench.api.plans import repo_plans

    return [task.id for task in (await (await repo_plans(invocation)).read()).tasks]


async def _sessions(invocation: Invocation) -> list[str]:
    from agent_workbench.api.session_queries import session_names

    return list(await session_names(invocation))


async def _proposals(invocation: Invocation) -> list[str]:
    from agent_workbench.subjects.inbox.calls import opened_inbox

    async with opened_inbox(invocation) as inbox:
        return [item.id for item in await inbox.items()]


async def _models(_: Invocation) -> list[str]:
    from agent_workbench.subjects.models.calls import stored_models

    return [str(model.name) for model in await asyncio.to_thread(stored_models)]
