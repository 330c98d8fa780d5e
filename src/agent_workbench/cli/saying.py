"""Printing for people: whatever a repository, a model or a server wrote in a text does not control the terminal."""

import contextlib
import os
import sys
from typing import TextIO

from agent_workbench.core.inert import inert


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print `text` with its control characters made visible, to standard output unless told otherwise."""
    print(inert(text), file=to or sys.stdout, flush=True)


def say_aside(text: str) -> None:
    """Print what is waited for to standard error, if anybody reads it; empty says nothing."""
    with contextlib.suppress(OSError):
        if text:
            say(text, to=sys.stderr)


def drop_output() -> None:
    """Have what is still to be printed go nowhere, because nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
