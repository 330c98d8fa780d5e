"""Bubblewrap command line of the sandbox, and the canary run that tests if it confines commands on this machine."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.shell.environment import clean_environment
from agent_workbench.core.errors import ShellError
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.system.processes import Guard, ProcessUser, spawn
from agent_workbench.system.programs import find_program

# Folders with files of the host's services, and with temporary files.
_EMPTIED = ("/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - they are emptied, not written to
# A courtesy only: reads are not confidential under this sandbox.
_SECRET_FOLDERS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".mozilla", ".thunderbird"),
    *(".config/gh", ".config/gcloud", ".config/google-chrome", ".config/chromium", ".config/op"),
    *(".local/share/keyrings", ".local/share/python_keyring"),
)
_SECRET_FILES = (
    *(".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".bash_history", ".zsh_history"),
)
# Links into the system that are in an emptied folder on some distributions.
_KEPT_LINKS = ("/run/current-system",)
# Root may write these without any capability, and escape: `core_pattern` names a program of the host.
_KERNEL_SETTINGS = (
    *("/proc/acpi", "/proc/bus", "/proc/driver", "/proc/dynamic_debug", "/proc/fs", "/proc/irq", "/proc/mtrr"),
    *("/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"),
)
INNER_HOME = "/tmp/home"  # noqa: S108 - inside the sandbox it is a fresh file system
INNER_TEMPORARY = "/tmp"  # noqa: S108 - as above

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


class SandboxBounds(Struct, frozen=True):
    """Access of a command: it starts in `folder` and may write there, in `writable` and in its own `/tmp`.

    Without a `folder` it starts in `start`, else in its own home. `emptied` folders are empty except for the `readable`
    paths in them, as those of all commands are; `hidden` ones appear empty, wherever they are. `keys` are files that it
    may read although they are hidden. It may write to a copy of `copied` folders, which is thrown away, and to `fresh`
    ones, which appear empty. `joined`: it keeps the network namespace that it is started in.
    """

    folder: str = ""
    start: str = ""
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    network: bool = False
    joined: bool = False


class HiddenPaths(Struct, frozen=True):
    """Real paths of emptied folders, folders of secrets, and masked files."""

    emptied: tuple[str, ...]
    secrets: tuple[str, ...]
    files: tuple[str, ...]


def hidden_paths(parent: Mapping[str, str]) -> HiddenPaths:
    """Return the paths to hide on this machine; `parent` is the environment with HOME and XDG_RUNTIME_DIR.

    Blocks.
    """
    home = Path(parent.get("HOME") or "/nonexistent").resolve()
    runtime = Path(parent.get("XDG_RUNTIME_DIR") or "/run").resolve()
    emptied = [Path(each).resolve() for each in _EMPTIED]
    if not home.is_relative_to(runtime):
        emptied.append(runtime)
    secrets = [(home / each).resolve() for each in _SECRET_FOLDERS]
    files = [home / each for each in _SECRET_FILES]
    real = sorted({str(each.resolve()) for each in files if os.access(each, os.F_OK)})
    return HiddenPaths(_folders(emptied), _folders(secrets), tuple(real))


def _folders(candidates: Iterable[Path]) -> tuple[str, ...]:
    return tuple(_outermost(str(each) for each in candidates if _is_folder(each) and each != Path("/")))


def _is_folder(path: Path) -> bool:
    return os.access(path, os.F_OK) and path.is_dir()


def confine(bwrap: str, argv: Sequence[str], bounds: SandboxBounds, hidden: HiddenPaths) -> list[str]:
    """Return the `bwrap` command line for `argv`. It passes on the environment, which must be clean. Blocks."""
    folder = os.path.realpath(bounds.folder) if bounds.folder else ""
    writable = [os.path.realpath(each) for each in (folder, *bounds.writable) if each]
    emptied = _folders(Path(each).resolve() for each in (*hidden.emptied, *bounds.emptied))
    readable = [path for path in _readable(bounds) if _under(path, emptied)]

    def is_seen(path: str) -> bool:
        return not _under(path, emptied) or _under(path, readable)

    words = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    words += _for_root() if os.geteuid() == 0 else []
    words += _each("--tmpfs", emptied)
    words += ["--dir", INNER_HOME]
    words += _shown("--ro-bind-try", _outermost(readable))
    for each in filter(is_seen, _outermost(map(os.path.realpath, bounds.copied))):
        words += ["--overlay-src", each, "--tmp-overlay", each]
    words += _each("--tmpfs", filter(is_seen, _outermost(map(os.path.realpath, bounds.fresh))))
    words += _each("--tmpfs", filter(is_seen, hidden.secrets))
    words += _shown("--bind-try", _outermost(writable))
    # The `.git` of a worktree could lead git elsewhere; that of a plain repository is its whole history.
    words += _shown("--ro-bind-try", [f"{folder}/.git"] if folder else [])
    for path in hidden.files:
        if is_seen(path) and not _under(path, [*hidden.secrets, *writable]):
            words += ["--ro-bind", "/dev/null", path]
    words += _covered(bounds.hidden)
    words += _shown("--ro-bind-try", sorted({os.path.realpath(each) for each in bounds.keys}))
    words += ["--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "--cap-drop", "ALL"]
    if bounds.joined:  # in which it would be root
        words += ["--unshare-user", "--uid", str(os.geteuid()), "--gid", str(os.getegid())]
    words += [] if bounds.network or bounds.joined else ["--unshare-net"]
    return [*words, "--chdir", folder or bounds.start or INNER_HOME, "--", *argv]


def _covered(paths: Iterable[str]) -> list[str]:
    """Return the options that cover folders and files that exist."""
    real = sorted({os.path.realpath(each) for each in paths if os.access(each, os.F_OK)})
    return [
        word
        for each in real
        for word in (_each("--tmpfs", [each]) if Path(each).is_dir() else ["--ro-bind", "/dev/null", each])
    ]


def _for_root() -> list[str]:
    return ["--unshare-user-try", *_shown("--ro-bind-try", _KERNEL_SETTINGS)]


def _shown(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _under(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are inside no other one, so that a later mount does not hide an earlier one."""
    unique = sorted(set(paths))
    return [path for path in unique if not any(path != other and _under(path, [other]) for other in unique)]


def _readable(bounds: SandboxBounds) -> list[str]:
    found = [os.path.realpath(each) for each in bounds.readable]
    found += [each for each in _KEPT_LINKS if Path(each).exists()]
    if bounds.network:
        # This file is often a link into /run.
        found.append(os.path.realpath("/etc/resolv.conf"))
    return found


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
