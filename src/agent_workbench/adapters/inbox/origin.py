"""Identity of the person who decides; processes that a command of the agent started are refused."""

import os
import pwd
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_workbench.core.errors import TrustError
from agent_workbench.system.processes import COMMAND_MARK

_SUPERVISOR = "/agent_workbench/system/supervisor.py"
_MOST_ANCESTORS = 1_000


def describe_user() -> str:
    """Return the name of the user and of the machine, such as `ada@laptop`."""
    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"uid {user}"
    return f"{name}@{socket.gethostname()}"


def check_not_a_command(environ: Mapping[str, str]) -> None:
    """Raise `TrustError` if this process is, or was started by, a command that the agent runs. Blocks.

    A command is known by a variable in its environment and, on Linux, by the supervisor among its ancestors.
    """
    if COMMAND_MARK in environ or any(word.endswith(_SUPERVISOR) for words in _ancestors() for word in words):
        raise TrustError(
            "a command that the agent runs cannot decide, nor queue a task",
            advice="do it in a terminal of your own, or in `agent tui`",
        )


def _ancestors() -> Iterator[list[str]]:
    """Yield the command line of each process above this one, as far as /proc tells."""
    process = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if process <= 0:
            return
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            stat = Path(f"/proc/{process}/stat").read_bytes()
        except OSError:
            return
        yield [os.fsdecode(word) for word in words]
        # The program's name, which is arbitrary, precedes the numbers in parentheses.
        process = int(stat.rpartition(b")")[2].split()[1])
