"""Output of the verbs. Text from a repository, a model or a server cannot control the terminal."""

import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from agent_workbench.core.errors import StorageError, WorkbenchError
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print `text` to standard output, or to `to`, with visible control characters.

    Raises `BrokenPipeError` if the reader has gone, `StorageError` if it cannot be written for another reason.
    """
    _print(sanitize(text), to)


def say_json(value: object) -> None:
    """Print a value as one line of ASCII JSON; raise as `say` does."""
    _print(json.dumps(value, ensure_ascii=True), None)


def say_document(text: str) -> None:
    """Print a whole sanitized document unchanged; raise as `say` does.

    `say` would cut a very long one.
    """
    _print(text.removesuffix("\n"), None)


def say_cells(cells: Sequence[str]) -> None:
    """Print texts as one line separated by tabs, for programs; raise as `say` does."""
    _print(_cells(cells), None)


def say_headings(cells: Sequence[str]) -> None:
    """Print the headings of such lines to standard error, for persons; ignore errors as `say_aside` does."""
    try:
        _print(_cells(cells), sys.stderr)
    except (BrokenPipeError, StorageError):
        drop_output(sys.stderr)


def _cells(cells: Sequence[str]) -> str:
    return "\t".join(map(sanitize_line, cells))


def _print(text: str, to: TextIO | None) -> None:
    try:
        print(text, file=to or sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output(to)
        raise StorageError(
            f"the output cannot be written: {error.strerror}", advice="check where standard output goes"
        ) from error


def say_last(text: str, *, to: TextIO | None = None) -> None:
    """Print as `say` does, but ignore errors, so that the exit code does not depend on the output."""
    try:
        say(text, to=to)
    except (BrokenPipeError, StorageError):
        drop_output(to)


def say_aside(text: str) -> None:
    """Print a remark to standard error and ignore errors; an empty text prints nothing."""
    if text:
        say_last(text, to=sys.stderr)


def say_error(error: WorkbenchError) -> None:
    """Print what failed, what to do, and the address of the page that helps to standard error; ignore errors of it."""
    from agent_workbench.api.help_pages import page_address

    say_aside(f"agent: {error}")
    for line in (error.advice, page_address(error.page)):
        say_aside(f"       {line}" if line else "")


def drop_output(stream: TextIO | None = None) -> None:
    """Discard all further output of a stream (standard output by default) whose reader has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)
