"""A text in the user's own editor: a private file for as long as that takes."""

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

USUAL = ("nano", "vi")


async def edit_in_editor(text: str, suffix: str, environ: Mapping[str, str]) -> str:
    """Return what the user made of `text` in `$VISUAL`, `$EDITOR`, or an editor that there is.

    The terminal has to be free. The file is the user's alone (0600), ends with `suffix`, and is removed. Raises
    `ShellError` when no editor could be run, or it said that it failed: then nothing of it counts.
    """
    command = editor_command(environ)
    with _interrupts_left_to_it():
        return await asyncio.to_thread(_edit, text, suffix, command)


def editor_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the user's editor with its flags; raise `ShellError` when there is none.

    A name is looked up on the PATH without the current folder; a path is the user's own choice.
    """
    wanted = environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        program, *flags = shlex.split(wanted) or ("",)
    except ValueError:
        raise ShellError(f"$VISUAL or $EDITOR cannot be read: {wanted}", advice="mend its quotes") from None
    if os.sep in program:
        return (program, *flags)
    path = environ.get("PATH", "")
    found = next(filter(None, (find_program(each, path) for each in ([program] if program else USUAL))), None)
    if found is None:
        raise ShellError(f"there is no editor {program}".rstrip(), advice="set $EDITOR to the one you use")
    return (found, *flags)


def _edit(text: str, suffix: str, command: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="agent-edit-") as folder:
        path = Path(folder) / f"text{suffix}"
        path.touch(mode=0o600)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            code = subprocess.run((*command, str(path)), check=False).returncode
        except OSError as error:
            raise ShellError(f"{command[0]} cannot be run: {error.strerror}", advice="set $EDITOR") from error
        if code:
            raise ShellError(f"{command[0]} ended with {code}", advice="nothing of it was taken")
        return path.read_bytes().decode("utf-8", "replace")


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Let Ctrl-C reach the editor without ending us."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
