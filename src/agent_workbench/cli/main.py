"""Entry point of the command `agent`: loads the requested verb and turns errors into a message and an exit code."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from agent_workbench.cli.options import NEW_SUMMARY, sentence
from agent_workbench.core.errors import ExitCode, RepoError, UsageError, WorkbenchError
from agent_workbench.core.version import __version__

DESCRIPTION = "A terminal workbench for coding agents on your own machine."
EPILOG = """\
Start with `agent` in a git repository: it opens the
workbench, as `agent tui` does. `agent VERB --help` tells more.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a person is needed,
4 environment, 5 model, 6 journal, 7 locked, 8 differs, 70 a defect,
130 interrupted."""


class Verb(NamedTuple):
    """A verb of the command line. `configure` in `module` adds its flags; `module` is imported only if needed."""

    name: str
    summary: str
    module: str
    configure: str = "configure"


GROUPS = (
    (
        "work",
        (
            Verb("tui", "open the workbench on the repository you are in", "cli.verbs.tui"),
            Verb("run", "do tasks unattended; what needs a person is parked", "cli.verbs.run"),
            Verb("chat", "talk with the model about this repository; it changes nothing", "cli.verbs.chat"),
            Verb("inbox", "list, show and decide what waits for you in all sessions", "subjects.inbox.verb"),
            Verb("plan", "show, check, make and extend the plan", "cli.verbs.plan"),
            Verb("merge", "merge the commit of a finished task into your branch", "cli.verbs.merge"),
            Verb("clean", "list what past work left, and remove it", "cli.verbs.clean"),
            Verb("consult", "ask a consultant: review, debug, spec, tdd and others", "subjects.consult_verb"),
        ),
    ),
    (
        "look back",
        (
            Verb("sessions", "list, search, show, resume, fork, compare and export sessions", "cli.verbs.sessions"),
            Verb("replay", "replay a session step by step, or re-run its prompts", "cli.verbs.replay"),
            Verb("verify", "verify which approvals led to a commit", "cli.verbs.verify"),
            Verb("search", "search the code of this repository as the model does", "cli.verbs.search"),
            Verb("audit", "list which tasks ended how, who decided what, and what it cost", "subjects.audit.verb"),
        ),
    ),
    (
        "set up",
        (
            Verb("init", "write .agent.yml and memory/ for this repository", "cli.verbs.init"),
            Verb("doctor", "check what works here, and what to do about the rest", "cli.verbs.doctor"),
            Verb("model", "pull, list, remove, serve and test models", "subjects.models.verb"),
            Verb("trust", "show what this repository would run, and trust it", "cli.verbs.trust"),
            Verb("rules", "list, check and revoke approval rules", "cli.verbs.rules"),
            Verb("skills", "list, show, check and set up skills", "subjects.skills.verb"),
            Verb("knowledge", "search, list, add and edit the notes that outlive a task", "subjects.knowledge.verb"),
            Verb("index", "show, build or clear the index of the code search", "cli.verbs.index"),
            Verb("database", "migrate and check the database that machines share", "cli.verbs.database"),
            Verb("completion", "print the script that completes words in your shell", "cli.completion"),
            Verb("demo", "try the workbench on a sample repository, with scripted answers", "cli.verbs.demo"),
        ),
    ),
    (
        "serve",
        (
            Verb("acp", "work in an editor: the agent of its Agent Client Protocol", "cli.verbs.acp"),
            Verb("mcp", "serve this repository to editors and other agents", "cli.verbs.mcp"),
            Verb("worker", "do the tasks of a queue: once, as they come, on a schedule", "subjects.worker.verb"),
        ),
    ),
)
SHORT_FORMS = (Verb("new", NEW_SUMMARY, "cli.verbs.plan", "configure_new"),)
"""Verbs of released versions that others replaced; they work, and are not listed."""
REPLACED = {
    "agent audit count": "agent audit query --count",
    "agent audit who": "agent audit query --decisions",
    "agent audit spend": "agent audit query --costs",
    "agent audit failures": "agent audit query --status failed",
    "agent audit service": "agent audit query --service NAME",
    "agent rules schema": "agent rules check FILE",
    "agent sessions export --format asciicast": "agent sessions export --format svg",
    "agent sessions export --format otlp": "agent sessions export --format json",
    "agent worker --webhook": "agent worker --watch",
}
"""Verbs, flags and values that are gone, and the command that replaces each."""
VERBS = (*(verb for _, verbs in GROUPS for verb in verbs), *SHORT_FORMS)


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows a replacement
    if "_ARGCOMPLETE" in os.environ:  # set by the script of `agent completion` when Tab is pressed
        from agent_workbench.cli.completion import complete

        try:
            complete(parser(os.environ.get("COMP_LINE", "").split()[1:]), [each.name for each in SHORT_FORMS])
        except UsageError:  # a verb that there is not: nothing completes it
            sys.exit(ExitCode.USAGE)
    code = execute(sys.argv[1:])
    if signal.getitimer(signal.ITIMER_REAL)[0]:  # a signal has limited the time left: Python's own end may take longer
        from agent_workbench.server_process import end_process

        end_process(code)
    sys.exit(code)


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        arguments = arguments or _verb_alone()
        options = parser(arguments).parse_args(arguments)  # loads the verb, which Ctrl-C may interrupt too
        _check_folder()
        return int(options.execute(options))
    except WorkbenchError as error:
        from agent_workbench.cli.output import say_error

        say_error(error)
        return error.exit_code
    except ModuleNotFoundError as error:
        from agent_workbench.cli.output import say_error
        from agent_workbench.core.extras import missing_subject

        if (missing := missing_subject(error)) is None:
            return _defect()
        say_error(missing)
        return missing.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        from agent_workbench.cli.output import drop_output

        drop_output()
        return ExitCode.DONE
    except Exception:
        return _defect()


def _defect() -> int:
    """Print the error that is being handled."""
    import traceback

    traceback.print_exc()
    print("agent: this is a defect of the workbench; the session's journal is kept", file=sys.stderr)
    return ExitCode.BROKEN


def _verb_alone() -> Sequence[str]:
    """Return the verb of a call without one: the screen, for a person in a repository; elsewhere it is missing."""
    _check_folder()
    here = Path.cwd()
    inside = any((folder / ".git").exists() for folder in (here, *here.parents))
    return ("tui",) if inside and sys.stdin.isatty() and sys.stdout.isatty() else ()


def _check_folder() -> None:
    try:
        Path.cwd()
    except OSError:
        raise RepoError("the current folder no longer exists", advice="change to a folder that exists") from None


class CommandParser(argparse.ArgumentParser):
    """Parser whose error messages repeat the user's words without letting them control the terminal."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise `UsageError` for a word that is none of the known ones, with the nearest of them."""
        if action.choices is None or value in action.choices:
            return
        from agent_workbench.core.text.amounts import did_you_mean, quoted

        known = [str(each) for each in action.choices if each not in {verb.name for verb in SHORT_FORMS}]
        near = did_you_mean(str(value), known)
        if isinstance(action, argparse._SubParsersAction):
            what, advice = f"{self.prog} has no verb {quoted(str(value))}", f"`{self.prog} --help` lists the verbs"
        else:
            of = f"a value of {'/'.join(action.option_strings)}" if action.option_strings else "known"
            what, advice = f"{quoted(str(value))} is not {of}", f"one of: {', '.join(known)}"
        if instead := REPLACED.get(" ".join((self.prog, *action.option_strings, str(value)))):
            near, advice = "", f"use `{instead}`"
        raise UsageError(f"{what}{near}", advice=advice)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, with what replaces a flag that is gone, and exit."""
        from agent_workbench.core.text.sanitizer import sanitize

        flags = {word for word in message.split() if word.startswith("--")}
        instead = [f"; use `{new}`" for old, new in REPLACED.items() if old.split()[-1] in flags]
        super().error(sanitize(message) + "".join(instead))


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    With `arguments` only the verb that they name is loaded and gets its flags; `--help` needs none.
    """
    root = _bare_parser()
    root.add_argument("--version", action="version", version=f"agent {__version__}")
    verbs = root.add_subparsers(prog="agent", metavar="VERB", required=True, help=argparse.SUPPRESS)
    wanted = None if arguments is None else next((word for word in arguments if not word.startswith("-")), "")
    for verb in VERBS:
        made = verbs.add_parser(verb.name, help=verb.summary, description=sentence(verb.summary))
        if wanted in {None, verb.name}:
            getattr(import_module(f"agent_workbench.{verb.module}"), verb.configure)(made)
    return root


def _bare_parser() -> argparse.ArgumentParser:
    return CommandParser(
        prog="agent",
        usage="agent [--version] VERB ...",
        description=f"{DESCRIPTION}\n\n{_listed_verbs()}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _listed_verbs() -> str:
    """Return all verbs by what one wants to do."""
    width = max(len(verb.name) for verb in VERBS)
    groups = (
        "\n".join((f"{title}:", *(f"  {verb.name.ljust(width)}  {verb.summary}" for verb in verbs)))
        for title, verbs in GROUPS
    )
    return "\n\n".join(groups)
