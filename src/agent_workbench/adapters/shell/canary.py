"""Finds out whether a sandbox holds, and which copy of the code a command imports, by trying."""

import asyncio
import contextlib
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.shell.environment import clean_environment
from agent_workbench.adapters.shell.sandbox import INNER_HOME, INNER_TEMPORARY, Bounds, confine, hidden_places
from agent_workbench.core.errors import ShellError
from agent_workbench.core.ports.workspace import Command, Shell
from agent_workbench.core.workspace import SandboxFacts
from agent_workbench.system.processes import Guard, spawn
from agent_workbench.system.programs import find_program

_SECONDS = 20.0
_SAID_BYTES = 4096
_IMPORT_SECONDS = 60.0
# What the filter alone keeps a command from.
_LEAKS = {"host's socket", "datagrams"}
# Says which of these it could do: write inside, write outside, reach a listener of the host, reach its own.
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
    """Confinement of commands; `bwrap` is the program's path, empty where there is none that works."""

    facts: SandboxFacts
    bwrap: str = ""
    guard: Guard = Guard.OPEN


class _Place(Struct, frozen=True):
    inside: Path
    outside: Path
    port: int


async def find_sandbox(parent: Mapping[str, str], network: bool, forbidden: str = "") -> Sandbox:
    """Return the sandbox that was seen to hold on this machine, or none and why.

    `parent` is the environment that names PATH and home, `network` whether commands may use the network. A `bwrap`
    inside the folder `forbidden` is not trusted.
    """
    if sys.platform != "linux":
        return _none("bubblewrap exists for Linux only; commands run with your rights")
    bwrap = await asyncio.to_thread(find_program, "bwrap", parent.get("PATH", ""), forbidden)
    if bwrap is None:
        return _none("bubblewrap is not installed: apt-get install bubblewrap, or dnf install bubblewrap")
    stack = contextlib.ExitStack()
    try:
        place = await asyncio.to_thread(stack.enter_context, _place())
        guard, refused = Guard.SHARED if network else Guard.OWN, ""
        said: list[str] = []
        try:
            said = await _probe(parent, bwrap, place, network, guard)
        except ShellError as error:
            refused = str(error)
        if said and "done" not in said:  # one that needs its set-user-id bit does not work behind a filter
            refused = said[-1]
        if refused:
            guard = Guard.OPEN
            said = await _probe(parent, bwrap, place, network, guard)
        escaped = await asyncio.to_thread(place.outside.exists)
    except (OSError, ShellError) as error:
        return _none(f"the sandbox could not be tried: {error}")
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
    return _none(_why(said, wanted))


def _none(why: str) -> Sandbox:
    return Sandbox(SandboxFacts(kind="none", holds=False, network=True, why=why))


@contextlib.contextmanager
def _place() -> Iterator[_Place]:
    with (
        tempfile.TemporaryDirectory(prefix="agent-canary-") as folder,
        socket.socket() as listener,
        socket.socket(socket.AF_UNIX) as named,
    ):
        place = Path(folder).resolve()
        (place / "inside").mkdir()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        named.bind(str(place / "socket"))
        named.listen()
        yield _Place(place / "inside" / "written", place / "written", listener.getsockname()[1])


async def _probe(parent: Mapping[str, str], bwrap: str, place: _Place, network: bool, guard: Guard) -> list[str]:
    """Return the words of the probe, or what bubblewrap said instead."""

    def prepare() -> tuple[list[str], dict[str, str]]:
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, str(place.inside), str(place.outside), str(place.port)]
        # The outer folder is shown again where /tmp is hidden: the sandbox has to refuse, not a missing path.
        readable = (str(place.outside.parent), sys.prefix, sys.base_prefix)
        bounds = Bounds(folder=str(place.inside.parent), readable=readable, network=network)
        words = confine(bwrap, argv, bounds, hidden_places(parent))
        return words, clean_environment(parent, os.defpath, INNER_HOME, INNER_TEMPORARY)

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


class ImportPlace(Struct, frozen=True):
    """Where a package was imported from (empty: it could not be), whether that is the worktree, and what was said."""

    package: str
    file: str
    in_worktree: bool
    said: str = ""


async def check_import_place(
    shell: Shell, worktree: str, package: str, environment: Mapping[str, str], python: str = "python"
) -> ImportPlace:
    """Import `package` as the tests would and return which copy that is. Raises `ShellError` when nothing can be run.

    `environment` is what `environment_for_tests` gives for the worktree.
    """
    code = f"import {package} as it; print('\\n' + (it.__file__ or list(it.__path__)[0]))"
    command = Command(
        line=f"{shlex.quote(python)} -c {shlex.quote(code)}",
        folder=worktree,
        timeout_seconds=_IMPORT_SECONDS,
        environment=environment,
    )
    outcome = await shell.run(command, lambda text: None)
    if outcome.exit_code != 0:
        return ImportPlace(package, "", in_worktree=False, said=outcome.output.strip() or outcome.reason)
    file = outcome.output.strip().rpartition("\n")[2]
    inside = await asyncio.to_thread(lambda: Path(file).resolve().is_relative_to(Path(worktree).resolve()))
    return ImportPlace(package, file, in_worktree=inside)
