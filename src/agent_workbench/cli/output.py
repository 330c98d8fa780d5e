"""Printing for people: whatever a repository, a model or a server wrote in a text does not control the terminal."""

import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from agent_workbench.core.errors import StorageError
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print `text` with its control characters made visible, to standard output unless told otherwise.

    Raises `BrokenPipeError` when nobody reads any more, `StorageError` when it cannot be written for another reason.
    """
    _print(sanitize(text), to)


def say_json(value: object) -> None:
    """Print a value as one line of JSON, all in ASCII: nothing in it controls the terminal. Raises what `say` does."""
    _print(json.dumps(value, ensure_ascii=True), None)


def say_document(text: str) -> None:
    """Print a document whole, as it is: it was made so that nothing in it controls the terminal.

    `say` cuts what is very long, which would no longer be the document. Raises what `say` does.
    """
    _print(text.removesuffix("\n"), None)


def say_cells(cells: Sequence[str]) -> None:
    """Print texts as one line with a tab between them, for programs. Raises what `say` does."""
    _print("\t".join(map(sanitize_line, cells)), None)


def _print(text: str, to: TextIO | None) -> None:
    try:
        print(text, file=to or sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output(to)
        raise StorageError(f"the output cannot be written: {error.strerror}") from error


def say_last(text: str, *, to: TextIO | None = None) -> None:
    """Do as `say` does, whether or not anybody reads: what follows, an exit code above all, does not depend on it."""
    try:
        say(text, to=to)
    except (BrokenPipeError, StorageError):
        drop_output(to)


def say_aside(text: str) -> None:
    """Print what is waited for to standard error, if anybody reads it; empty says nothing."""
    if text:
        say_last(text, to=sys.stderr)


def drop_output(stream: TextIO | None = None) -> None:
    """Have what is still to be printed (to standard output unless told otherwise) go nowhere: nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)
