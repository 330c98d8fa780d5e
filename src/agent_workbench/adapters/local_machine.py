"""Ports of the machine: its clock, session ids, desktop notifications, and its load, cores, memory and GPUs."""

import asyncio
import base64
import contextlib
import html
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent_workbench.core.ids import SessionId
from agent_workbench.core.workers import Gpu, MachineResources
from agent_workbench.system.programs import child_environment, find_program

DETECTION_SECONDS = 5.0
"""Longest time of a detection."""
NVML_SHARE = 0.6
"""Share of the time after which NVML is given up for `nvidia-smi`."""
AFTER_HANG_SECONDS = 300.0
"""Time without a detection after one that did not end."""
_END_SECONDS = 0.2
_MOST_BYTES = 100_000
_MOST_GPUS = 64
_NAME_CHARS = 80
_MIB = 1024
_NVML = str(Path(__file__).with_name("nvml_program.py"))
_QUERY = ("--query-gpu=memory.total,memory.free,name", "--format=csv,noheader,nounits")
_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")

GIB = float(1 << 30)
_CGROUPS = Path("sys/fs/cgroup")
_UNLIMITED = 1 << 60

NOTIFY_SECONDS = 5.0
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
# Variables through which a program reaches the desktop.
_OF_DESKTOPS = ("DBUS_", "XDG_", "DISPLAY", "WAYLAND_", "XAUTHORITY")


class LocalMachine:
    """`core.ports.machine.Machine`: programs are found on the PATH of `environ`, but not in a `forbidden` folder."""

    def __init__(self, environ: Mapping[str, str], *forbidden: str) -> None:
        self._detection = GpuDetection(environ, *forbidden)

    def resources(self) -> MachineResources:
        return machine_resources(self._detection.gpus)

    def find_gpus(self) -> None:
        self._detection.refresh()


class _HangError(Exception):
    """A program did not end in time."""


class GpuDetection:
    """Detection of GPUs; all calls block. `gpus` is the newest result. No program of a `forbidden` folder is run.

    Without a driver (`has_driver`) NVML is not asked; without a driver and `nvidia-smi` no process is started.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *forbidden: str,
        seconds: float = DETECTION_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        has_driver: Callable[[], bool] = lambda: any(map(os.path.exists, _DEVICES)),
    ) -> None:
        self.gpus: tuple[Gpu, ...] = ()
        self._environ = environ
        self._forbidden = forbidden
        self._seconds = seconds
        self._now = monotonic
        self._has_driver = has_driver
        self._hung_at = float("-inf")

    def refresh(self) -> tuple[Gpu, ...]:
        """Detect the GPUs and return them; none after a failure, nor for a while after a program that hung."""
        if self._now() < self._hung_at + AFTER_HANG_SECONDS:
            return self.gpus
        self.gpus = ()
        left, hung = self._seconds, False
        for argv, unit, separator, share in self._ways():
            began = self._now()
            try:
                said = _output(argv, left * share, child_environment(self._environ))
            except _HangError:
                said, hung = None, True
            left -= self._now() - began
            if said is not None:
                self.gpus = tuple(_gpus(said, unit, separator))
                return self.gpus
        if hung:
            self._hung_at = self._now()
        return self.gpus

    def _ways(self) -> Iterator[tuple[list[str], float, str, float]]:
        """Return the programs to ask: arguments, GiB of one unit, separator, and share of the time that is left."""
        if self._has_driver():
            yield [sys.executable, "-I", _NVML], 1 / GIB, " ", NVML_SHARE
        smi = find_program("nvidia-smi", self._environ.get("PATH", ""), *self._forbidden)
        if smi is not None:
            yield [smi, *_QUERY], 1 / _MIB, ",", 1.0


def _output(argv: list[str], seconds: float, environ: Mapping[str, str]) -> str | None:
    """Return the output of a program, None if it fails; raise `_HangError` if it has not ended in time.

    It is killed then, and not waited for: a process in the driver may be unkillable.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        said, _ = process.communicate(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired as error:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        if process.stdout is not None:
            process.stdout.close()
        raise _HangError from error
    return said[:_MOST_BYTES].decode("utf-8", "replace") if process.returncode == 0 else None


def _gpus(said: str, unit: float, separator: str) -> Iterator[Gpu]:
    """Return the GPUs of lines with total memory, free memory and name; other lines are passed over."""
    for line in said.splitlines()[:_MOST_GPUS]:
        total, free, name = (each.strip() for each in (*line.split(separator, 2), "", "")[:3])
        if total.isdigit() and free.isdigit():
            yield Gpu(name[:_NAME_CHARS], round(int(total) * unit, 2), round(int(free) * unit, 2))


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


class SystemClock:
    """`core.ports.machine.Clock` on the machine's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic_seconds(self) -> float:
        return time.monotonic()


class SystemIds:
    """`core.ports.machine.Ids`: the time in UTC and 30 random bits."""

    def session(self) -> SessionId:
        suffix = base64.b32encode(secrets.token_bytes(5)).decode("ascii")[:6].lower()
        return SessionId(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{suffix}")


class DesktopNotifications:
    """The port `Desktop` with `notify-send`, on macOS `osascript`, from the PATH of `environ`."""

    def __init__(self, environ: Mapping[str, str], platform: str = sys.platform) -> None:
        self._environ = environ
        self._platform = platform

    async def notify(self, title: str, text: str) -> None:
        """Show a notification; without the program or a desktop nothing happens."""
        command = self._command(title, text)
        program = await asyncio.to_thread(find_program, command[0], self._environ.get("PATH", ""))
        if program is None:
            return
        with contextlib.suppress(OSError):
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                env=child_environment(self._environ, *_OF_DESKTOPS),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                await asyncio.wait_for(process.wait(), NOTIFY_SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()

    def _command(self, title: str, text: str) -> tuple[str, ...]:
        """Return the program and its arguments. The texts cannot act as an option, a script or markup."""
        if self._platform == "darwin":
            lines = tuple(word for line in _SCRIPT for word in ("-e", line))
            return ("osascript", *lines, "--", title, text)
        return ("notify-send", "--app-name", title, "--", title, html.escape(text, quote=False))
