"""Entry point of the command `agent`: loads the requested verb and turns errors into a message and an exit code."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from agent_workbench.cli.options import NEW_SUMMARY, describe_verb
from agent_workbench.core.errors import ExitCode, RepoError, WorkbenchError
from agent_workbench.core.version import __version__

EPILOG = "Start with `agent tui` in a git repository. Exit codes are listed in docs/exit-codes.md."


class Verb(NamedTuple):
    """A verb of the command line. `configure` in `module` adds its flags; `module` is imported only if needed."""

    name: str
    summary: str
    module: str
    configure: str = "configure"


VERBS = (
    Verb("tui", "open the workbench on the repository you are in", "verbs.tasks.tui"),
    Verb("run", "do tasks unattended; proposals that need a person are parked", "verbs.tasks.run"),
    Verb("worker", "do the tasks of a queue unattended: once, as they come, or on a schedule", "verbs.tasks.worker"),
    Verb("replay", "replay a past session step by step, or re-run its prompts", "verbs.records.replay"),
    Verb("init", "write .agent.yml and memory/ for this repository without changing existing files", "verbs.repo.init"),
    Verb("new", NEW_SUMMARY, "verbs.tasks.plan", "configure_new"),
    Verb("plan", "show, check or extend the plan", "verbs.tasks.plan"),
    Verb(
        "sessions",
        "list, search, show, verify, resume, fork, compare or export the sessions of this repository",
        "verbs.records.sessions",
    ),
    Verb("inbox", "list, show and decide what waits for you in all sessions of this repository", "verbs.tasks.inbox"),
    Verb(
        "verify", "verify which approvals led to a commit, and that it matches what they showed", "verbs.records.verify"
    ),
    Verb("audit", "list which tasks ended how, who decided what, and what it cost", "verbs.records.audit"),
    Verb("merge", "merge the commit of a finished task into your current branch", "verbs.tasks.merge"),
    Verb(
        "clean",
        "list what past work left (branches, worktrees, checkpoints, sessions) and remove it",
        "verbs.records.clean",
    ),
    Verb("chat", "talk with the model about this repository; it reads, and changes nothing", "verbs.models.chat"),
    Verb("search", "search the code of this repository as the model does", "verbs.repo.search"),
    Verb("index", "show, build or clear the index of the code search", "verbs.repo.index"),
    Verb("consult", "ask a consultant: review, debug, spec, tdd, retrospective, trainer", "verbs.models.consult"),
    Verb("model", "pull, list, remove, serve and test models, or show their status", "verbs.models.model"),
    Verb("mcp", "serve this repository to editors and other agents (Model Context Protocol)", "verbs.repo.mcp"),
    Verb(
        "skills",
        "list, show, choose, check and set up the skills that teach the model ways of working",
        "verbs.repo.skills",
    ),
    Verb("knowledge", "search, list, add and edit the notes that outlive a task", "verbs.repo.knowledge"),
    Verb("rules", "list the approval rules for this repository, or revoke one", "verbs.repo.rules"),
    Verb("trust", "show what this repository would run, and trust exactly that", "verbs.repo.trust"),
    Verb("completion", "print the script that completes verbs, tasks and sessions in your shell", "completion"),
    Verb("doctor", "check what works here, what does not, and what to do about it", "verbs.repo.doctor"),
    Verb("demo", "try the workbench on a sample repo; the model's answers are scripted", "verbs.tasks.demo"),
)


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows a replacement
    if "_ARGCOMPLETE" in os.environ:  # set by the script of `agent completion` when Tab is pressed
        from agent_workbench.cli.completion import complete

        complete(parser(os.environ.get("COMP_LINE", "").split()[1:]))
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        options = parser(arguments).parse_args(arguments)  # loads the verb, which Ctrl-C may interrupt too
        _check_folder()
        return int(options.execute(options))
    except WorkbenchError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        from agent_workbench.cli.output import drop_output

        drop_output()
        return ExitCode.DONE
    except Exception:
        import traceback

        traceback.print_exc()
        print("agent: this is a defect of the workbench; the session's journal is kept", file=sys.stderr)
        return ExitCode.BROKEN


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError:
        raise RepoError("the current folder no longer exists", advice="change to a folder that exists") from None


class CommandParser(argparse.ArgumentParser):
    """Parser whose error messages repeat the user's words without letting them control the terminal."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit."""
        from agent_workbench.core.text.sanitizer import sanitize

        super().error(sanitize(message))


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    With `arguments` only the verb that they name is loaded and gets its flags; `--help` needs none.
    """
    root = _bare_parser()
    root.add_argument("--version", action="version", version=f"agent {__version__}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", required=True)
    wanted = None if arguments is None else next((word for word in arguments if not word.startswith("-")), "")
    for verb in VERBS:
        made = describe_verb(verbs, verb.name, verb.summary)
        if wanted in {None, verb.name}:
            getattr(import_module(f"agent_workbench.cli.{verb.module}"), verb.configure)(made)
    return root


def _bare_parser() -> argparse.ArgumentParser:
    return CommandParser(
        prog="agent", description="A terminal workbench for coding agents on your own machine.", epilog=EPILOG
    )


def print_error(error: WorkbenchError) -> None:
    """Print what failed and what to do to standard error."""
    from agent_workbench.cli.output import say_last

    say_last(f"agent: {error}", to=sys.stderr)
    if error.advice:
        say_last(f"       {error.advice}", to=sys.stderr)
