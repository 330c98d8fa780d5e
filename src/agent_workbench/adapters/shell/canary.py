"""Canary run that tests if the sandbox confines commands on this machine."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.shell.environment import clean_environment
from agent_workbench.adapters.shell.sandbox import INNER_HOME, INNER_TEMPORARY, SandboxBounds, confine, hidden_paths
from agent_workbench.core.errors import ShellError
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.system.processes import Guard, ProcessUser, spawn
from agent_workbench.system.programs import find_program

_SECONDS = 20.0
_SAID_BYTES = 4096
# Things that only the socket filter prevents.
_LEAKS = {"host's socket", "datagrams"}
# Prints what it could do: write inside, write outside, reach sockets of the host, reach its own socket.
_PROBE = """
import os, socket, sys
inside, outside, port = sys.argv[1:]
for word, path in (("inside", inside), ("outside", outside)):
    try:
        open(path, "w").close()
        print(word)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", int(port)), 1).close()
    print("network")
except OSError:
    pass
def connects(name):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(1)
        caller.connect(name)
try:
    os.chdir(os.path.dirname(outside))
    connects("socket")
    print("host's socket")
except OSError:
    pass
try:
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(os.path.join(os.path.dirname(inside), "own"))
        own.listen()
        connects(own.getsockname())
    print("own socket")
except OSError:
    pass
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close()
    print("datagrams")
except OSError:
    pass
print("done")
"""


class Sandbox(Struct, frozen=True):
    """Confinement of commands; `bwrap` is the path of a working bubblewrap, or empty.

    Where there is none, `guard` may be the user that commands run as.
    """

    facts: SandboxFacts
    bwrap: str = ""
    guard: Guard | ProcessUser = Guard.OPEN


class _ProbePaths(Struct, frozen=True):
    inside: Path
    outside: Path
    port: int


async def find_sandbox(parent: Mapping[str, str], network: bool, forbidden: str = "") -> Sandbox:
    """Return the sandbox that passed the canary run, or none with the reason.

    `parent` is the environment with PATH and HOME; `network` allows commands to use the network. A `bwrap` inside the
    folder `forbidden` is not trusted.
    """
    if sys.platform != "linux":
        return no_sandbox("bubblewrap exists for Linux only; commands run with your rights")
    bwrap = await asyncio.to_thread(find_program, "bwrap", parent.get("PATH", ""), forbidden)
    if bwrap is None:
        return no_sandbox("bubblewrap is not installed: apt-get install bubblewrap, or dnf install bubblewrap")
    stack = contextlib.ExitStack()
    try:
        paths = await asyncio.to_thread(stack.enter_context, _probe_paths())
        guard, refused = Guard.SHARED if network else Guard.OWN, ""
        said: list[str] = []
        try:
            said = await _probe(parent, bwrap, paths, network, guard)
        except ShellError as error:
            refused = str(error)
        if said and "done" not in said:  # bubblewrap with a set-user-id bit does not work behind a filter
            refused = said[-1]
        if refused:
            guard = Guard.OPEN
            said = await _probe(parent, bwrap, paths, network, guard)
        escaped = await asyncio.to_thread(paths.outside.exists)
    except (OSError, ShellError) as error:
        return no_sandbox(f"the sandbox could not be tried: {error}")
    finally:
        await asyncio.to_thread(stack.close)
    wanted = {"inside", "own socket", "done"} | ({"network"} if network else set())
    leaks = _LEAKS & set(said) if refused else set()
    if set(said) - leaks == wanted and not escaped:
        why = (
            f"commands can reach the host's Unix sockets: the filter against it was refused ({refused})"
            if leaks
            else ""
        )
        return Sandbox(SandboxFacts(kind="bwrap", holds=not leaks, network=network, why=why), bwrap, guard)
    return no_sandbox(_why(said, wanted))


def no_sandbox(why: str) -> Sandbox:
    """Return the absence of a sandbox, with the reason."""
    return Sandbox(SandboxFacts(kind="none", holds=False, network=True, why=why))


@contextlib.contextmanager
def _probe_paths() -> Iterator[_ProbePaths]:
    with (
        tempfile.TemporaryDirectory(prefix="agent-canary-") as folder,
        socket.socket() as listener,
        socket.socket(socket.AF_UNIX) as named,
    ):
        paths = Path(folder).resolve()
        (paths / "inside").mkdir()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        named.bind(str(paths / "socket"))
        named.listen()
        yield _ProbePaths(paths / "inside" / "written", paths / "written", listener.getsockname()[1])


async def _probe(parent: Mapping[str, str], bwrap: str, paths: _ProbePaths, network: bool, guard: Guard) -> list[str]:
    """Return the words that the probe printed, or the error of bubblewrap."""

    def prepare() -> tuple[list[str], dict[str, str]]:
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, str(paths.inside), str(paths.outside), str(paths.port)]
        # The outer folder stays visible although /tmp is hidden: the sandbox must refuse, not a missing path.
        readable = (str(paths.outside.parent), sys.prefix, sys.base_prefix)
        bounds = SandboxBounds(folder=str(paths.inside.parent), readable=readable, network=network)
        words = confine(bwrap, argv, bounds, hidden_paths(parent))
        return words, clean_environment(parent, os.defpath, INNER_HOME, INNER_TEMPORARY, "")

    words, environment = await asyncio.to_thread(prepare)
    async with await spawn(words, folder="/", environment=environment, guard=guard) as process:
        said = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                while len(said) < _SAID_BYTES and (piece := await process.read(_SAID_BYTES)):
                    said += piece
    lines = said.decode("utf-8", "replace").splitlines()
    return lines or ["it said nothing"]


def _why(said: list[str], wanted: set[str]) -> str:
    if "done" in said:
        lacking, too_much = wanted - set(said), set(said) - wanted
        return f"bubblewrap does not hold here: could {sorted(too_much)}, could not {sorted(lacking)}"
    why = f"bubblewrap does not work here: {said[-1]}"
    if any(word in said[-1] for word in ("uid map", "namespace", "Operation not permitted", "Permission denied")):
        why += (
            "; the kernel refuses user namespaces: see the sysctls kernel.unprivileged_userns_clone and"
            " kernel.apparmor_restrict_unprivileged_userns, or in a container start it with"
            " --security-opt seccomp=unconfined --cap-add SYS_ADMIN"
        )
    return why
