"""`agent init`: set-up of a repository, with a model of this machine."""

import argparse
import asyncio
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.local_models import ModelChoice
    from agent_workbench.core.repo_setup import SetupProposal


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("--yes", action="store_true", help="use the first of the found models, without a question")
    verb.add_argument("--url", default="", metavar="URL", help="use the server at this address for all your repos")
    verb.add_argument("--private", action="store_true", help="keep what git shows as new out of it (.git/info/exclude)")


def execute(options: argparse.Namespace) -> int:
    """Show what was found, write missing starter files and the chosen model, and print their names.

    Exit with 5 if no model answers at the address that was named.
    """
    from agent_workbench.api.set_up import propose_set_up, write_set_up
    from agent_workbench.core.repo_setup import project_lines

    invocation = Invocation(Path.cwd(), os.environ, {})
    proposal = asyncio.run(propose_set_up(invocation, options.url))
    choice = chosen_model(proposal, yes=options.yes)
    if ".agent.yml" in proposal.files:
        for line in project_lines(proposal.project):
            say(line)
    written = asyncio.run(write_set_up(invocation, proposal, choice))
    for path in written:
        say(f"wrote {path}")
    if not written:
        say("all files exist already")
    _say_new(invocation, private=options.private)
    say(_next_step(proposal, choice))
    lacks = proposal.named_url and proposal.choice is None
    return ExitCode.MODEL if lacks else ExitCode.DONE


def _say_new(invocation: Invocation, *, private: bool) -> None:
    """Say which of its files git shows as new, or keep them out of git."""
    from agent_workbench.api.set_up import keep_private, new_to_git

    if not (new := asyncio.run(new_to_git(invocation))):
        return
    names = " and ".join(new)
    if private:
        asyncio.run(keep_private(invocation, new))
        say(f"kept to yourself: {names} (.git/info/exclude)")
    else:
        say(f"git shows {names} as new: commit them to share them, or `agent init --private` keeps them to yourself")


def chosen_model(proposal: "SetupProposal", *, yes: bool = False) -> "ModelChoice | None":
    """Print the models that were found, and return the one that the user chooses; without a terminal none."""
    from agent_workbench.cli.questions import chosen_number
    from agent_workbench.core.repo_setup import labelled, model_lines

    if proposal.models is None:
        return None
    choices = proposal.models.choices
    if not choices:
        for line in model_lines(proposal):
            say(line)
        return None
    for number, choice in enumerate(choices, 1):
        say(labelled("model" if number == 1 else "", f"{number}. {choice.label}"))
    for file in proposal.models.files:
        if not file.usable:
            say(labelled("", f"-  {file.name}: {file.left_out or file.options.reasons[-1]}"))
    # Who names a server with one model has chosen it.
    yes = yes or (bool(proposal.named_url) and len(choices) == 1)
    number = 1 if yes else chosen_number(f"Use which of them for all your repos ({proposal.own_file})?", len(choices))
    if not number:
        return None
    for reason in choices[number - 1].reasons:
        say(labelled("", reason))
    return choices[number - 1]


def _next_step(proposal: "SetupProposal", choice: "ModelChoice | None") -> str:
    if proposal.models is None or choice is not None:
        return 'next: `agent tui`, or `agent plan add "what is to be done"`'
    if proposal.named_url and proposal.models.choices:
        return f"next: `agent init --url {shlex.quote(proposal.named_url)} --yes` uses the first model"
    if proposal.named_url:
        return "next: start the server, or check its address; then run this again"
    if proposal.models.choices:
        return "next: `agent init --yes` uses the first model, `agent tui` asks you"
    return "next: get a model as described above; then `agent tui`"
