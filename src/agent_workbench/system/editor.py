"""Editing of a text in the user's own editor, through a temporary private file."""

import asyncio
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.core.errors import ShellError
from agent_workbench.system.programs import find_program

DEFAULT_EDITORS = ("nano", "vi")


async def edit_in_editor(text: str, suffix: str, environ: Mapping[str, str]) -> str:
    """Return `text` as edited in `$VISUAL`, `$EDITOR`, or a default editor.

    The terminal must be free. The temporary file is private (0600), ends with `suffix`, and is removed. Raises
    `ShellError` if no editor could be run or it failed; its changes are then discarded.
    """
    command = editor_command(environ)
    with _ignored_interrupts():
        return await asyncio.to_thread(_edit, text, suffix, command)


def editor_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the user's editor with its flags; raise `ShellError` if there is none.

    A name is looked up on the PATH without the current folder; a path is used as given.
    """
    wanted = environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        program, *flags = shlex.split(wanted) or ("",)
    except ValueError:
        raise ShellError(
            f"$VISUAL or $EDITOR is not a valid command: {wanted}", advice="fix the quotes in it"
        ) from None
    if os.sep in program:
        return (program, *flags)
    path = environ.get("PATH", "")
    found = next(filter(None, (find_program(each, path) for each in ([program] if program else DEFAULT_EDITORS))), None)
    if found is None:
        raise ShellError(f"no editor {program} was found".replace("  ", " "), advice="set $EDITOR to your editor")
    return (found, *flags)


def _edit(text: str, suffix: str, command: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="agent-edit-") as folder:
        path = Path(folder) / f"text{suffix}"
        path.touch(mode=0o600)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            code = subprocess.run((*command, str(path)), check=False).returncode
        except OSError as error:
            raise ShellError(
                f"{command[0]} cannot be run: {error.strerror}", advice="set $EDITOR to your editor"
            ) from error
        if code:
            raise ShellError(
                f"the editor {command[0]} ended with exit code {code}", advice="the text was not changed; edit it again"
            )
        return path.read_bytes().decode("utf-8", "replace")


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in this process while the editor receives it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
