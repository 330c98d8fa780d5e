"""Supervisor program of one command: no process of the command outlives the command, the supervisor or its parent.

    python -I -S supervisor.py <grace_seconds> <guard> <limits> <input> <user> <own> <network> <command> [argument ...]

Standard input is a connected socket to the parent. The supervisor writes lines to it: `started <pid>` or
`failed <errno>`, and at the end `used <CPU seconds> <peak memory in KiB>` and
`ended <status>` (negative: signal), possibly after `exceeded <limit>`. If the parent writes anything, the processes of
the command that handle SIGABRT get it: Python tells where it was (`PYTHONFAULTHANDLER`). If the parent
closes its side (the kernel does so when the parent is killed), or on SIGTERM, the command and every descendant get
SIGTERM, and SIGKILL after the grace period. The same happens to descendants that remain after the command ended. The
supervisor then ends as the command did.

Linux: the supervisor is the subreaper of all descendants, so `setsid` and double forks do not escape it. Elsewhere it
reaches only the process group of the command. <guard> selects the filter for Unix sockets of the host
(`socket_filter`): `open` (no filter), `own` (the command has its own network namespace), `shared` (it shares the
network namespace of the host).
<limits> is `none`, or limits for `resource_watch`: a command that exceeds them is killed at once.
<input> is `none`, or the descriptor that becomes the standard input of the command.
<user> is `none`, or the numbers `uid:gid` that the command runs as, without any capability or other group.
<own> names the command's own folders to the processes in it that look at their ancestors (`command_bounds`).
<network> is `none`, or the descriptor of the network namespace of another command that this one joins.
The supervisor starts for each command, so its imports are few.
"""

import contextlib
import errno
import os
import select
import signal
import sys
import time

# `-I` leaves our package out. It is appended, so that it hides no module of the standard library.
sys.path.append(__file__.rpartition("/agent_workbench/")[0])
_PARENT = 0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_NS_GET_USERNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0xB701, 0x10000000, 0x40000000
_POLL_SECONDS = 0.005
# A process in uninterruptible sleep cannot be killed, so the wait for it is limited.
_UNKILLABLE_SECONDS = 5.0


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; end at once if that has happened."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _become(user: str) -> None:
    """Become another user for good: no capability, group or set-user-id program leads back."""
    uid, gid = map(int, user.split(":"))
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _join(network: int) -> None:
    """Enter a network namespace, and before it the user namespace that it belongs to: only there may its owner do so.

    The sandbox makes a user namespace of its own below that one.
    """
    import ctypes
    import fcntl

    kernel = ctypes.CDLL(None, use_errno=True)
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    for descriptor, kind in ((owner, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if kernel.setns(descriptor, kind):
            raise OSError(ctypes.get_errno() or errno.EPERM, "setns")
        os.close(descriptor)


def _children_by_parent() -> dict[int, list[int]]:
    """Return the children of each process from /proc; empty without /proc."""
    found: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would double the time this program takes to start
    except OSError:
        return found
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - as above
                parent = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it ended during the scan
        found.setdefault(parent, []).append(int(name))
    return found


def _status(pid: int) -> dict[bytes, list[bytes]]:
    """Return what the kernel says of a process; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:  # noqa: PTH123 - as above
            return {name: value.split() for name, _, value in (line.partition(b":") for line in status)}
    except OSError:
        return {}


def _in_own_namespace(status: dict[bytes, list[bytes]]) -> bool:
    """Return True if a process has a number of its own in a namespace below ours, as a sandbox makes one."""
    return len(status.get(b"NSpid", [])) > 1


def _handles(status: dict[bytes, list[bytes]], number: signal.Signals) -> bool:
    """Return True if a process has a handler for a signal."""
    return bool(status) and bool(int(status[b"SigCgt"][0], 16) >> (number - 1) & 1)


def _descendants() -> list[int]:
    """Return every living or unreaped descendant of this process."""
    children = _children_by_parent()
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


class _Command:
    """The command with its exit status and all of its descendants."""

    def __init__(self, argv: list[str], guard: str, limits: str, source: str, user: str, network: str) -> None:
        self.status: int | None = None
        self.error = 0
        failure, failed = os.pipe()
        supervisor = os.getpid()
        guarding = None if guard == "open" else _Guarding(guard)
        reading = os.open(os.devnull, os.O_RDONLY) if source == "none" else int(source)
        self.pid = os.fork()
        if self.pid == 0:
            self._execute(argv, supervisor, (reading, failed), guarding, (limits, user, network))
        # Held here too, a pipe would seem to have a reader after the command ended.
        os.close(reading)
        os.close(failed)
        if guarding:
            guarding.begin(self.pid)
        with open(failure, "rb") as stream:  # noqa: PTH123 - a file descriptor
            self.error = int(stream.read() or b"0")

    @staticmethod
    def _execute(
        argv: list[str], supervisor: int, ends: tuple[int, int], guarding: "_Guarding | None", bounds: tuple[str, ...]
    ) -> None:
        reading, failed = ends
        limits, user, network = bounds
        try:
            os.dup2(reading, 0)
            os.close(reading)
            os.setsid()
            _die_with(supervisor)
            for number in (
                signal.SIGPIPE,
                signal.SIGXFSZ,
                signal.SIGINT,
                signal.SIGHUP,
                signal.SIGTERM,
                signal.SIGCHLD,
            ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            _forbid_core_files()
            if limits != "none":
                from agent_workbench.system.resource_watch import limit_processes, mark_command

                limit_processes(limits)
                mark_command()
            if network != "none":
                _join(int(network))
                _die_with(supervisor)  # the kernel may forget it with the namespace
            if guarding:
                guarding.enter()
            if user != "none":  # who may be unable to read our modules
                _become(user)
                _die_with(supervisor)  # the kernel forgets it when the user changes
            os.execv(argv[0], argv)  # noqa: S606 - this program exists to start the command
        except OSError as error:
            os.write(failed, str(error.errno or errno.EIO).encode())
        finally:
            os._exit(127)

    def reap(self) -> bool:
        """Reap ended descendants; return True if any descendant is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = os.waitstatus_to_exitcode(status)

    def freeze(self) -> None:
        """Stop every descendant with SIGSTOP, so that none forks while they are killed one by one."""
        stopped: set[int] = set()
        give_up_at = time.monotonic() + _UNKILLABLE_SECONDS
        while (others := set(_descendants()) - stopped) and time.monotonic() < give_up_at:
            for pid in others:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= others

    def signal(self, *numbers: int) -> None:
        """Send the signals to the command's group and to every descendant."""
        everyone = _descendants()
        for number in numbers:
            if self.status is None or not everyone:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, number)
            for pid in everyone:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)

    def abort(self) -> None:
        """Send SIGABRT to the processes that handle it, and stop the others until they are ended.

        A shell would start its next command, or end its sandbox with all that is in it. Those that started others come
        first. The sandbox program outside is left out: all inside would be killed with it.
        """
        if sys.platform != "linux":
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGABRT)
        everyone = {pid: _status(pid) for pid in _descendants()}
        inside = {pid: status for pid, status in everyone.items() if _in_own_namespace(status)}
        for pid, status in (inside or everyone).items():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGABRT if _handles(status, signal.SIGABRT) else signal.SIGSTOP)


class _Guarding:
    """Installation of `socket_filter` in the command, and its service in the supervisor."""

    def __init__(self, guard: str) -> None:
        from agent_workbench.system import socket_filter as socket_guard

        self._guard = socket_guard
        self._abstract = guard == "own"
        self._told, self._tell = os.pipe()
        self._wait, self._go = os.pipe()

    def enter(self) -> None:
        """Install the filter in the child before the command starts, and wait until the supervisor answers calls."""
        os.close(self._go)
        os.write(self._tell, str(self._guard.install()).encode())
        os.close(self._tell)
        if not os.read(self._wait, 1):
            raise OSError(errno.ENOSYS, "nobody answers the calls of the filter")

    def begin(self, pid: int) -> None:
        """Answer the calls of the command in the supervisor; if that fails, the command does not start."""
        os.close(self._tell)
        os.close(self._wait)
        with contextlib.suppress(OSError):
            if number := os.read(self._told, 16):
                self._guard.serve(self._guard.take_listener(pid, int(number)), abstract=self._abstract)
                os.write(self._go, b"1")
        os.close(self._told)
        os.close(self._go)


def _wait(command: _Command, wake: int, told: list[int], limits: str) -> str:
    """Wait until the command ends, the parent closes its side, a signal asks for the end, or a limit is exceeded.

    Returns the exceeded limit as the end of a sentence, otherwise an empty text.
    """
    watch, seconds = None, None
    if limits != "none":
        from agent_workbench.system.resource_watch import EVERY_SECONDS, ResourceWatch

        watch, seconds = ResourceWatch(limits, _descendants), EVERY_SECONDS
    while command.reap() and command.status is None and not told:
        ready = select.select([_PARENT, wake], [], [], seconds)[0]
        if wake in ready:
            os.read(wake, 512)
        if _PARENT in ready:
            if not _read_parent():
                return ""
            command.abort()
        if watch and (excess := watch.excess()):
            return excess
    return ""


def _read_parent() -> bytes:
    try:
        return os.read(_PARENT, 512)
    except OSError:
        return b""


def _end(command: _Command, wake: int, grace_seconds: float) -> None:
    """End the command and all its descendants, with SIGTERM first if there is a grace period."""
    if grace_seconds and command.reap():
        # A stopped process handles SIGTERM only after SIGCONT.
        command.signal(signal.SIGTERM, signal.SIGCONT)
    kill_at = time.monotonic() + grace_seconds
    while (left := kill_at - time.monotonic()) > 0 and command.reap():
        if select.select([wake], [], [], left)[0]:
            os.read(wake, 512)
    give_up_at = time.monotonic() + _UNKILLABLE_SECONDS
    while time.monotonic() < give_up_at:
        if not command.reap():
            break
        command.signal(signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    if sys.platform != "linux":
        with contextlib.suppress(OSError):
            os.killpg(command.pid, signal.SIGKILL)


def _report(word: str, what: int | str) -> None:
    with contextlib.suppress(OSError):
        os.write(_PARENT, f"{word} {what}\n".encode())


def _used() -> str:
    """Return the CPU seconds of all ended descendants, and the memory of the largest one of them in KiB."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss // 1024 if sys.platform == "darwin" else used.ru_maxrss
    return f"{used.ru_utime + used.ru_stime:.3f} {peak}"


def _listen() -> tuple[int, list[int]]:
    """Return a descriptor that becomes readable on a signal, and the list of received requests to end."""
    told: list[int] = []
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: told.append(number))
    return wake, told


def _forbid_core_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _leave(status: int) -> None:
    """Exit as the command did."""
    if status < 0:
        _forbid_core_files()
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


def main(arguments: list[str]) -> None:
    """Run the command with its grace period, guard, limits, input, user, folders and network. Does not return."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake, told = _listen()
    grace, guard, limits, source, user, _, network, *argv = arguments
    command = _Command(argv, guard, limits, source, user, network)
    if command.error:
        _report("failed", command.error)
        os._exit(127)
    # The reader must see the end of the output when the command and its descendants have closed it.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    _report("started", command.pid)
    excess = _wait(command, wake, told, limits)
    if excess:
        command.freeze()
    _end(command, wake, 0.0 if excess else float(grace))
    if excess:
        _report("exceeded", excess)
    _report("used", _used())
    status = -signal.SIGKILL if command.status is None else command.status
    _report("ended", status)
    _leave(status)


if __name__ == "__main__":
    main(sys.argv[1:])
