"""Load, cores and memory of this machine, as far as a container leaves them. All calls block, for a moment."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent_workbench.core.queue.workers import Gpu, MachineResources

GIB = float(1 << 30)
_CGROUPS = Path("sys/fs/cgroup")
_UNLIMITED = 1 << 60


def machine_resources(gpus: tuple[Gpu, ...] = (), root: Path = Path("/")) -> MachineResources:
    """Return the resources of this machine with GPUs that were found before; what is unknown is 0.

    Cores and memory are those of the container, if it has limits. The load is that of the machine, so the container
    has the share of its cores that the machine has left.
    """
    total, available = _memory(root)
    usable = _usable()
    cores, quota = len(usable), _cpu_quota(root)
    allowed = min(cores, quota) if quota else float(cores)
    load = _load()
    machine = os.cpu_count() or cores or 1
    return MachineResources(
        load=load,
        cores=max(1, int(allowed)),
        cores_available=round(max(0.0, allowed * (1 - load[0] / machine)), 2),
        memory_total_gb=round(total / GIB, 2),
        memory_available_gb=round(available / GIB, 2),
        gpus=gpus,
        physical_cores=len({_siblings(each, root) for each in usable}),
    )


def _load() -> tuple[float, float, float]:
    try:
        one, five, fifteen = os.getloadavg()
    except OSError:
        return 0.0, 0.0, 0.0
    return round(one, 2), round(five, 2), round(fifteen, 2)


def _usable() -> frozenset[int]:
    """Return the numbers of the processors that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return frozenset(affinity(0) if affinity is not None else range(os.cpu_count() or 1))


def _siblings(processor: int, root: Path) -> str:
    """Return the processors on the same core as one list; two threads on one core only wait for each other."""
    return _text(root / f"sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list") or str(processor)


def _memory(root: Path) -> tuple[int, int]:
    """Return the bytes of memory that there are and those that are available."""
    found = {"MemTotal": 0, "MemAvailable": 0}
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        amount = rest.split()
        if name in found and amount and amount[0].isdigit():
            found[name] = int(amount[0]) * 1024
    total, available = found["MemTotal"] or _sysconf_memory(), found["MemAvailable"]
    for limit, used in _memory_limits(root):
        total, available = min(total, limit) or limit, min(available, max(0, limit - used))
    return total, available


def _sysconf_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    """Return the limit and the use of each control group around this process that has a limit."""
    for folder in _groups(root, "memory"):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            said = _text(folder / limit)
            if said.isdigit() and int(said) < _UNLIMITED:
                usage = _text(folder / used)
                yield int(said), max(0, (int(usage) if usage.isdigit() else 0) - _page_cache(folder))


def _page_cache(folder: Path) -> int:
    """Return the bytes of files in memory, which count as used and are given up for anything else."""
    lines = (line.split() for line in _text(folder / "memory.stat").splitlines())
    found = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
    names = ("active_file", "inactive_file")
    return sum(found.get(f"total_{name}", found.get(name, 0)) for name in names)


def _cpu_quota(root: Path) -> float:
    """Return the smallest limit of CPU time in cores, 0 for none."""
    found = []
    for folder in _groups(root, "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            found.append(int(quota) / int(period))
    return min(found, default=0.0)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Return the folders of the control groups of this process, of both versions, the outermost first."""
    base = root / _CGROUPS
    yield base
    yield base / controller
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        folder = base / controller if controllers else base
        for part in path.split("/"):
            if part in ("", ".", ".."):
                continue
            folder /= part
            yield folder


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(65_536).decode("ascii", "replace").strip()
    except OSError:
        return ""
