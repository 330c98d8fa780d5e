"""Bounds of what a command of the agent may record: processes in it write only to the command's own folders.

A command runs what a model wrote. In the sandbox it writes nowhere else; without one, `agent` started in it holds
itself to the same bounds. So it decides, trusts, merges or queues nothing for the user, and tests that run `agent` in
folders of their own pass. Everything that writes for the user calls `check_record` with the path first.

A process is in a command if one of these says so:

- the variable `COMMAND_MARK` in its environment, which names the command's own folders;
- on Linux, a supervisor among its ancestors, whose arguments name them. The supervisor adopts every orphan of its
  command, so `setsid`, double forks and an empty environment do not escape it;
- on Linux, a resource limit that every process inherits and only root can take away (`resource_watch`). It remains
  where no ancestor can be seen: the supervisor was killed, or `/proc` is another one. It names no folders.
"""

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from agent_workbench.core.errors import TrustError
from agent_workbench.system.resource_watch import COMMAND_LIMIT

COMMAND_MARK = "AGENT_WORKBENCH_COMMAND"
"""Variable in the environment of every command of the agent; its value is that of `bounds_text`."""
_SUPERVISOR = "/agent_workbench/system/supervisor.py"
# Between the supervisor's path and the folders: its grace period, guard, limits, input and user.
_WORDS_BEFORE_BOUNDS = 5
_GIT = ".git"


def bounds_text(folders: Iterable[str]) -> str:
    """Return the text that names the own folders of a command. Blocks."""
    return json.dumps([os.path.realpath(each) for each in folders])


def check_record(path: Path | str) -> None:
    """Raise `TrustError` in a command of the agent unless `path` is in one of the command's own folders. Blocks.

    In a command in a command, it has to be so for both. As in the sandbox, `.git` directly in a folder is not its own.
    """
    bounds = [*_marked(), *_supervised()]
    if not bounds and not _is_limited():
        return
    real = Path(os.path.realpath(path))
    if not bounds or not all(_is_in(real, folders) for folders in bounds):
        raise TrustError(
            f"a command that the agent runs cannot decide, nor record anything for you: {path} is not its own",
            advice="do it in a terminal of your own, or in `agent tui`; a test that runs `agent` needs a repository, "
            "XDG_STATE_HOME and XDG_CONFIG_HOME in the command's temporary folder (TMPDIR)",
        )


def _is_in(path: Path, folders: tuple[str, ...]) -> bool:
    own = any(path.is_relative_to(folder) for folder in folders)
    return own and not any(path.is_relative_to(f"{folder}/{_GIT}") for folder in folders)


def _marked() -> Iterator[tuple[str, ...]]:
    """Yield the folders that the environment names."""
    mark = os.environ.get(COMMAND_MARK)
    if mark is not None:
        yield _folders(mark)


@cache
def _supervised() -> tuple[tuple[str, ...], ...]:
    """Return the folders that each supervisor among the ancestors names; it is looked for once.

    Later there may be fewer ancestors, never more.
    """
    found = []
    for words in _ancestors():
        at = next((number for number, word in enumerate(words) if word.endswith(_SUPERVISOR)), None)
        if at is not None:
            found.append(_folders("".join(words[at + _WORDS_BEFORE_BOUNDS + 1 :][:1])))
    return tuple(found)


def _folders(text: str) -> tuple[str, ...]:
    """Return the folders of a text; none for one that another version wrote, or somebody else."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(each for each in said if isinstance(each, str)) if isinstance(said, list) else ()


def _ancestors() -> list[list[str]]:
    """Return the command line of each process above this one, as far as /proc tells (Linux)."""
    while True:
        found: list[list[str]] = []
        child, process = os.getpid(), os.getppid()
        while process > 0:
            words, above = _words(process), _parent(process)
            # A parent that ended meanwhile has hidden its own ancestors, and its number may be another process's now.
            if _parent(child) != process:
                break
            if words is None:
                return found
            found.append(words)
            child, process = process, above
        else:
            return found


def _words(process: int) -> list[str] | None:
    """Return the command line of a process, None if it cannot be seen."""
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return None


def _parent(process: int) -> int:
    """Return the parent of a process, 0 if it cannot be seen."""
    if process == os.getpid():
        return os.getppid()
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return 0
    # The program's name, which is arbitrary, precedes the numbers in parentheses.
    return int(stat.rpartition(b")")[2].split()[1])


def _is_limited() -> bool:
    """Return True if this process has the limit of a command."""
    return sys.platform == "linux" and resource.getrlimit(resource.RLIMIT_RSS)[1] == COMMAND_LIMIT
