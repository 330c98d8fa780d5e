"""Resource limits of a command, checked ten times a second: processes, memory and disk.

Other means do not suffice: cgroups are rarely writable for us, `RLIMIT_NPROC` does not limit root and counts all of the
user's processes, and a limit on address space stops programs that only reserve it (sanitizers, Java, WebAssembly). So
three values of the kernel are read, which is cheap even with a thousand busy processes. The command's own processes are
counted when one of these values changed much. Where processes of others end, theirs can hide the command's: so they are
also counted at intervals, which takes at most a fiftieth of a processor. `RLIMIT_NPROC`, above the number of all
processes of the machine, stops commands that fork faster than they are killed, except as root.
`supervisor` starts for each command, so the imports are few.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence

EVERY_SECONDS = 0.1
COMMAND_LIMIT = 1 << 62 | int.from_bytes(b"agent")
"""Limit on resident memory that commands have, and no other process: far above all memory, and of no other effect."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_GIGABYTE = 1 << 30
# Shares of the machine's memory: the most for a command, the least for others, an amount not worth a check.
_MOST, _LEFT, _LITTLE = 3 / 4, 1 / 32, 1 / 8
# Between two counts of the command's processes at least so long, and so many times as long as a count takes.
_LEAST_PAUSE_SECONDS, _PAUSE_FOR_WORK = 0.5, 50
_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class ResourceWatch:
    """Watch over the resources of a command since its start; the disk is that of the current folder.

    `limits` is `<processes>,<memory bytes>,<disk bytes left>`. 0 means three quarters of the memory, and 1 GiB or a
    twentieth of the disk, whichever is less. `descendants` returns the ids of the command's processes.
    """

    def __init__(self, limits: str, descendants: Callable[[], Sequence[int]]) -> None:
        self._processes, memory, disk = map(int, limits.split(","))
        self._descendants = descendants
        self._others = _tasks()
        total, self._available, self._shared = _memory()
        self._total = min(total, *_container_limits(total))
        self._memory = memory or int(self._total * _MOST)
        free, size = _disk()
        # The command is not blamed for a disk that was nearly full before.
        self._disk = min(disk or min(_GIGABYTE, size // 20), free // 2)
        self._count_at = time.monotonic() + _LEAST_PAUSE_SECONDS

    def excess(self) -> str:
        """Return the exceeded limit as the end of a sentence, empty if there is none."""
        return self._too_much_of_own() or self._too_little_disk()

    def _too_much_of_own(self) -> str:
        tasks, started = _tasks(), time.monotonic()
        _, available, shared = _memory()
        self._available = max(self._available, available)
        little_left = available < self._total * _LEFT
        taken = self._available - available > min(self._total * _LITTLE, self._memory / 2)
        if not (taken or little_left or tasks - self._others > self._processes or started >= self._count_at):
            return ""
        own = self._descendants()
        running = sum(map(_own_tasks, own))
        self._others = tasks - running
        ended = time.monotonic()
        self._count_at = ended + max(_LEAST_PAUSE_SECONDS, (ended - started) * _PAUSE_FOR_WORK)
        if running > self._processes:
            return f"it had more than {self._processes:,} processes and threads"
        # Pages that processes share are counted for each of them, so the sum alone proves nothing.
        used = max(0, shared - self._shared) + sum(map(_own_memory, own)) if taken or little_left else 0
        if taken and used > self._memory:
            return f"it took {_in_words(used)} of memory, {_in_words(self._memory)} are allowed"
        if little_left and used > self._total * _LITTLE:
            return f"it took {_in_words(used)} of memory and left {_in_words(available)} to all others"
        return ""

    def _too_little_disk(self) -> str:
        free, _ = _disk()
        return "" if free >= self._disk else f"it wrote until {_in_words(free)} were left on the disk"


def limit_processes(limits: str) -> None:
    """Let the kernel limit the processes and threads of this process and its children (except as root)."""
    import resource

    most, running = int(limits.partition(",")[0]), _tasks()
    if not running:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    # The limit counts all processes of the user, so it must be above the number of all on the machine.
    wanted = running + most + most // 8
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (wanted, wanted))


def mark_command() -> None:
    """Give this process and its descendants the limit by which a command is known (Linux).

    Nobody but root can take it away again. The kernel enforces no limit on resident memory.
    """
    import resource

    if sys.platform == "linux":
        try:
            resource.setrlimit(resource.RLIMIT_RSS, (COMMAND_LIMIT, COMMAND_LIMIT))
        except (OSError, ValueError):
            return  # a lower limit is in force


def _in_words(count: int) -> str:
    return f"{count / _GIGABYTE:,.1f} GiB" if count >= _GIGABYTE else f"{count / (1 << 20):,.0f} MiB"


def _first(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.read(4096)
    except OSError:
        return b""


def _tasks() -> int:
    """Return the number of processes and threads of the machine, 0 if unknown."""
    fields = _first("/proc/loadavg").split()
    return int(fields[3].partition(b"/")[2]) if len(fields) > 3 else 0


def _memory() -> tuple[int, int, int]:
    """Return total memory, available memory, and shared memory (tmpfs included), in bytes."""
    found = dict.fromkeys((b"MemTotal:", b"MemAvailable:", b"Shmem:"), 0)
    for line in _first("/proc/meminfo").splitlines():
        name, *rest = line.split()
        if name in found and rest:
            found[name] = int(rest[0]) * 1024
    total, available, shared = found.values()
    return total, available, shared


def _container_limits(total: int) -> Sequence[int]:
    said = [_first(path).strip() for path in _CONTAINERS]
    return [int(each) for each in said if each.isdigit()] or [total]


def _own_tasks(pid: int) -> int:
    """Return the number of threads of a process; one that has ended counts until it is reaped."""
    fields = _first(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return max(1, int(fields[17])) if len(fields) > 17 else 0


def _own_memory(pid: int) -> int:
    """Return the private resident memory of a process in bytes."""
    fields = _first(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0


def _disk() -> tuple[int, int]:
    """Return the free bytes for the user and the size of the file system of the current folder."""
    try:
        facts = os.statvfs(".")
    except OSError:
        return 0, 0
    return facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize
