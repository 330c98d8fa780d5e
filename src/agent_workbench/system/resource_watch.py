"""Watch over what a command takes of the machine: processes, memory and disk.

A cgroup is rarely ours to write, `RLIMIT_NPROC` does not bind root and counts all that the user runs, and a limit on
address space stops programs that only reserve it (sanitizers, Java, WebAssembly). So three facts of the kernel are read
ten times a second, which is cheap also while a thousand processes are busy. Only where they changed by much since the
start are the command's own processes counted. What forks faster than it is killed is stopped by the kernel, but for
root, at an `RLIMIT_NPROC` that lies above all that the machine runs.
Used by `minder` alone, which is started for each command; so only a little of the standard library is imported.
"""

import os
from collections.abc import Callable, Sequence

EVERY_SECONDS = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_GIGABYTE = 1 << 30
# Parts of the machine's memory: what a command may take; what must be left for others; what nobody has to ask about.
_MOST, _LEFT, _LITTLE = 3 / 4, 1 / 32, 1 / 8
_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class ResourceWatch:
    """Tells whether a command took too much since this was made; it writes in the current folder.

    `told` is `<processes>,<memory bytes>,<disk bytes left>`. 0 stands for three quarters of the memory, and for 1 GiB
    or a twentieth of the disk, whichever is less. `descendants` returns the ids of the command's processes.
    """

    def __init__(self, told: str, descendants: Callable[[], Sequence[int]]) -> None:
        self._processes, memory, disk = map(int, told.split(","))
        self._descendants = descendants
        self._tasks = _tasks()
        total, self._available, self._shared = _memory()
        self._total = min(total, *_container_limits(total))
        self._memory = memory or int(self._total * _MOST)
        free, size = _disk()
        # A disk that was nearly full before is no fault of the command's.
        self._disk = min(disk or min(_GIGABYTE, size // 20), free // 2)

    def excess(self) -> str:
        """Return what was exceeded, as the end of a sentence, empty for nothing."""
        return self._too_many() or self._too_much_memory() or self._too_little_disk()

    def _too_many(self) -> str:
        if _tasks() - self._tasks <= self._processes or len(self._descendants()) * 2 <= self._processes:
            return ""
        return f"it had more than {self._processes:,} processes and threads"

    def _too_much_memory(self) -> str:
        _, available, shared = _memory()
        if self._available - available <= min(self._total * _LITTLE, self._memory / 2):
            return ""
        used = max(0, shared - self._shared) + sum(map(_own_memory, self._descendants()))
        if used > self._memory:
            return f"it took {_in_words(used)} of memory, {_in_words(self._memory)} are allowed"
        if available < self._total * _LEFT and used > self._total * _LITTLE:
            return f"it took {_in_words(used)} of memory and left {_in_words(available)} to all others"
        return ""

    def _too_little_disk(self) -> str:
        free, _ = _disk()
        return "" if free >= self._disk else f"it wrote until {_in_words(free)} were left on the disk"


def bound_processes(told: str) -> None:
    """Have the kernel refuse this process and its children more processes and threads than `told` allows (not root)."""
    import resource

    most, running = int(told.partition(",")[0]), _tasks()
    if not running:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    # The limit counts all that the user runs, so it has to lie above the whole machine's.
    wanted = running + most + most // 8
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (wanted, wanted))


def _in_words(count: int) -> str:
    return f"{count / _GIGABYTE:,.1f} GiB" if count >= _GIGABYTE else f"{count / (1 << 20):,.0f} MiB"


def _first(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.read(4096)
    except OSError:
        return b""


def _tasks() -> int:
    """Return how many processes and threads the machine has, 0 where that is not known."""
    fields = _first("/proc/loadavg").split()
    return int(fields[3].partition(b"/")[2]) if len(fields) > 3 else 0


def _memory() -> tuple[int, int, int]:
    """Return the bytes that the machine has, that could be had, and that are shared or in a file system of memory."""
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


def _own_memory(pid: int) -> int:
    """Return the bytes that a process has to itself: resident, and of no file."""
    fields = _first(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0


def _disk() -> tuple[int, int]:
    """Return the bytes that are free here for the user, and the size of the file system."""
    try:
        facts = os.statvfs(".")
    except OSError:
        return 0, 0
    return facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize
