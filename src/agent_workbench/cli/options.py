"""Flags and verbs of the command line: what several verbs share."""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.amounts import quoted

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]

MOST_DIGITS = 9
MOST_PORT = 65_535
# Of `agent plan new` and its short form `agent new`.
NEW_SUMMARY = "ask the model for tasks that reach a goal"
ROLES = ("roles.planner", "roles.executor", "roles.reflexion")

Execute = Callable[[argparse.Namespace], int]


def sentence(summary: str) -> str:
    """Return a summary as a sentence."""
    return f"{summary[0].upper()}{summary[1:]}."


def describe_verb(verbs: "Verbs", name: str, summary: str) -> argparse.ArgumentParser:
    """Add a verb with its one-line summary and return its parser."""
    return verbs.add_parser(name, help=summary, description=sentence(summary))


def add_verb(verbs: "Verbs", name: str, summary: str, execute: Execute) -> argparse.ArgumentParser:
    """Add a verb with its one-line summary and the function that runs it; return its parser for its flags."""
    verb = describe_verb(verbs, name, summary)
    verb.set_defaults(execute=execute)
    return verb


def show_examples(verb: argparse.ArgumentParser, *lines: str) -> None:
    """End the help of a verb with examples."""
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    verb.epilog = "\n  ".join(("examples:", *lines))


def is_number(text: str) -> bool:
    """Return True for a whole number in ASCII digits that is no longer than any that is needed."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def whole_number(least: int = 0, most: int = 10**MOST_DIGITS - 1) -> Callable[[str], int]:
    """Return the parser of a whole number from `least` to `most`; it raises `ArgumentTypeError` for anything else."""

    def parse(text: str) -> int:
        if is_number(text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number from {least:,} to {most:,}")

    return parse


def event_number(said: str | None) -> int | None:
    """Return the number of an event, None if none was given; raise `UsageError`."""
    if said is None:
        return None
    if is_number(said):
        return int(said)
    raise UsageError(f"{said!r} is not an event", advice="give its number; `agent sessions show` prints them")


def add_words(verb: argparse.ArgumentParser) -> None:
    """Add the argument for a task in words."""
    verb.add_argument(
        "words",
        nargs="*",
        metavar='"WORDS"',
        help='a new task in your words, or a prompt of yours ("/fix 12"), in quotes',
    )


def task_words(options: argparse.Namespace, verb: str) -> str:
    """Return the task in words, empty if there is none; raise `UsageError` for a single word, which may be a typo.

    A word that begins with `/` may call a prompt.
    """
    said: list[str] = options.words
    if not said:
        return ""
    example = f'put the task in quotes: {verb} "say what is to be done"'
    if len(said) > 1:
        raise UsageError(f"{len(said)} arguments are no task", advice=example)
    if len(said[0].split()) < 2 and not said[0].startswith("/"):
        raise UsageError(f"{quoted(said[0])} is one word, and no task", advice=example)
    return said[0]


def add_model_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags that choose the model."""
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--model", metavar="GGUF", help="serve this model file")
    which.add_argument("--model-url", metavar="URL", help="use the server at this address")
    which.add_argument("--endpoint", metavar="NAME", help="ask this endpoint of .agent.yml for everything")
    verb.add_argument("--model-name", metavar="NAME", help="ask for this one of the server's models")


def overrides(options: argparse.Namespace) -> Mapping[str, str]:
    """Return the settings given by flags, by dotted key."""
    flags = {"model.path": "model", "model.url": "model_url", "model.name": "model_name"}
    said = {key: getattr(options, flag, None) for key, flag in flags.items()}
    said |= dict.fromkeys(ROLES, getattr(options, "endpoint", None))
    return {key: value for key, value in said.items() if value}
