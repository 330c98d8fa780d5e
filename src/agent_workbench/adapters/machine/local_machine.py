"""This machine as a worker describes it."""

from collections.abc import Mapping

from agent_workbench.adapters.machine.gpus import GpuDetection
from agent_workbench.adapters.machine.resources import machine_resources
from agent_workbench.core.queue.workers import MachineResources


class LocalMachine:
    """`core.ports.machine.Machine`: programs are found on the PATH of `environ`, but not in a `forbidden` folder."""

    def __init__(self, environ: Mapping[str, str], *forbidden: str) -> None:
        self._detection = GpuDetection(environ, *forbidden)

    def resources(self) -> MachineResources:
        return machine_resources(self._detection.gpus)

    def find_gpus(self) -> None:
        self._detection.refresh()
