"""User that commands run as where no sandbox holds: not the workbench's own, who holds the credentials."""

import asyncio
import contextlib
import os
import pwd
import shlex
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent_workbench.core.errors import ConfigError, ShellError
from agent_workbench.system.atomic_files import make_directories
from agent_workbench.system.processes import ProcessUser, spawn
from agent_workbench.system.user_dirs import state_dir

_ROOT = 0
_KILL_CAPABILITY = 5
_SECONDS = 20.0
_SAID_BYTES = 4096
_ADVICE = "name another one in sandbox.user (AGENT_SANDBOX__USER); a container's image needs such a user"
# Prints what it could do: write inside, read the workbench's environment and memory and a private file of it.
_PROBE = """
: > {inside} && echo inside
for each in {private}; do
    head -c 1 "$each" > /dev/null && echo "$each"
done
echo done
"""


def find_user(wanted: str) -> ProcessUser:
    """Return the user with this name or number; raise `ConfigError` for an unknown one, root, and the workbench's."""
    try:
        entry = pwd.getpwuid(int(wanted)) if wanted.isdecimal() else pwd.getpwnam(wanted)
    except (KeyError, OverflowError):
        raise ConfigError(f"sandbox.user: there is no user {wanted!r} on this machine", advice=_ADVICE) from None
    if entry.pw_uid in {_ROOT, os.geteuid()}:
        whom = "root" if entry.pw_uid == _ROOT else "the user that the workbench runs as"
        raise ConfigError(f"sandbox.user: {wanted!r} is {whom}, whose commands could read its keys", advice=_ADVICE)
    return ProcessUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


async def user_problem(user: ProcessUser) -> str:
    """Return why commands cannot run as this user, or could read the workbench's credentials; empty if all is well.

    A canary run in the folder of the worktrees finds out.
    """
    if not await asyncio.to_thread(_may_kill):
        return f"nobody could end a command of {user.name}: the workbench lacks the capability CAP_KILL"
    private = [f"/proc/{os.getpid()}/{each}" for each in ("environ", "mem", "maps")]
    stack = contextlib.ExitStack()
    try:
        folder = await asyncio.to_thread(stack.enter_context, _probe_folder(user))
        private.append(f"{folder}.private")
        script = _PROBE.format(inside=shlex.quote(f"{folder}/inside"), private=shlex.join(private))
        said = await _probe(["/bin/sh", "-c", script], folder, user)
    except (OSError, ShellError) as error:
        return f"commands cannot run as {user.name}: {error}; only root, or its capabilities, can change the user"
    finally:
        await asyncio.to_thread(stack.close)
    if "done" not in said or "inside" not in said:
        return f"{user.name} cannot work below {state_dir()}; set XDG_STATE_HOME to a folder that all users can enter"
    found = [each for each in private if each in said]
    return f"a command of {user.name} can read {', '.join(found)}" if found else ""


def _may_kill() -> bool:
    """Return True if this process may signal those of other users, as far as the system tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return True
    held = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "")
    return not held or bool(int(held, 16) >> _KILL_CAPABILITY & 1)


@contextlib.contextmanager
def _probe_folder(user: ProcessUser) -> Iterator[str]:
    """Yield a folder that belongs to the user, with a file beside it that only the workbench may read."""
    make_directories(state_dir())
    with tempfile.TemporaryDirectory(prefix="agent-canary-", dir=state_dir()) as above:
        folder = Path(above) / "work"
        folder.mkdir()
        secret = Path(f"{folder}.private")
        secret.touch(0o600)
        secret.write_text("x")
        hand_over(str(folder), user)
        yield str(folder)


async def _probe(words: list[str], folder: str, user: ProcessUser) -> list[str]:
    said = b""
    async with await spawn(words, folder=folder, environment={"PATH": "/usr/bin:/bin"}, guard=user) as process:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                while len(said) < _SAID_BYTES and (piece := await process.read(_SAID_BYTES)):
                    said += piece
    return said.decode("utf-8", "replace").splitlines()


def hand_over(folder: str, user: ProcessUser) -> None:
    """Give a folder with its folders and files to the user; raise `OSError`. Blocks.

    The workbench's own folders above it can be entered then, not listed. Links are not followed. A file with a second
    name stays as it is: it may be one of the host's.
    """
    for above in Path(folder).parents:
        mode = above.stat().st_mode
        if above.is_relative_to(state_dir()) and not mode & stat.S_IXOTH:
            above.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(top, user.uid, user.gid)
        for _, folders, files, at in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            for name in (*folders, *files):
                _give(name, at, user)
    finally:
        os.close(top)


def _give(name: str, folder: int, user: ProcessUser) -> None:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    kind = stat.S_IFMT(facts.st_mode)
    if facts.st_uid == user.uid or kind not in {stat.S_IFREG, stat.S_IFDIR}:
        return
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        # Asked of what was opened: another command of this user may have replaced it since.
        now = os.fstat(opened)
        if stat.S_ISDIR(now.st_mode) or (stat.S_ISREG(now.st_mode) and now.st_nlink == 1):
            os.fchown(opened, user.uid, user.gid)
    finally:
        os.close(opened)
