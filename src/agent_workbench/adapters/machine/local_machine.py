"""This machine as a worker describes it, with its GPUs by NVML or `nvidia-smi`, asked within a bound."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent_workbench.adapters.machine.resources import GIB, machine_resources
from agent_workbench.core.queue.workers import Gpu, MachineResources
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
