"""Bubblewrap command line of the sandbox: `/` read-only, secret files hidden, no network."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

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
