"""A command that was left running: its last output, its network, and its end."""

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from agent_workbench.adapters.shell.output import LiveOutput
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ShellError
from agent_workbench.core.ports.tools import NOTHING, StandardStreams
from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.system.processes import Guard, ProcessUser, SupervisedProcess, spawn

KEPT_BYTES = 64 * 1024
# At most one piece in each pause: a command that floods waits, and costs neither memory nor processor time.
_READ_BYTES, _PAUSE_SECONDS = 32 * 1024, 0.1
_LIVE_BYTES, _LIVE_SECONDS = 16 * 1024, 0.5
# For its last words in the pipe after it has ended.
_REST_SECONDS = 1.0
_CHILD_SECONDS, _POLL_SECONDS = 5.0, 0.01


class RunningCommand:
    """The port `core.ports.workspace.BackgroundCommand`; `held` ends the process and closes what belongs to it.

    `network` is the descriptor of its network namespace, `NOTHING` if no other command can join it. `shared`: its
    network is that of the host.
    """

    def __init__(
        self, process: SupervisedProcess, held: AsyncExitStack, network: int, on_output: OnOutput, *, shared: bool
    ) -> None:
        self.network = network
        self.reachable = shared or network != NOTHING
        self.shared = shared
        self._process = process
        self._held = held
        self._kept = bytearray()
        self._written = 0
        self._live = LiveOutput(on_output, _LIVE_SECONDS, _LIVE_BYTES)
        self._began = time.monotonic()
        self._ending = in_background(self._follow())

    @property
    def outcome(self) -> CommandOutcome | None:
        return self._ending.result() if self._ending.done() and not self._ending.cancelled() else None

    def tail(self, since: int = 0) -> tuple[str, int]:
        new = min(max(0, self._written - since), len(self._kept))
        return self._kept[len(self._kept) - new :].decode("utf-8", "replace"), self._written

    async def wait(self) -> CommandOutcome:
        return await asyncio.shield(self._ending)

    async def stop(self) -> CommandOutcome:
        try:
            await self._process.stop()
            await asyncio.wait({self._ending}, timeout=_REST_SECONDS)
        finally:
            self.network = NOTHING
            await self._held.aclose()
        return await self.wait()

    async def _follow(self) -> CommandOutcome:
        while piece := await self._process.read(_READ_BYTES):
            self._kept += piece
            del self._kept[:-KEPT_BYTES]
            self._written += len(piece)
            self._live.add(piece)
            await asyncio.sleep(_PAUSE_SECONDS)
        exit_code = await self._process.wait()
        self._live.close()
        seconds = time.monotonic() - self._began
        if self._process.excess:
            return CommandOutcome(None, "", seconds, reason=f"stopped: {self._process.excess}")
        return CommandOutcome(exit_code, "", seconds)


async def open_network(
    process: SupervisedProcess, held: AsyncExitStack, trial: Sequence[str], guard: Guard | ProcessUser
) -> int:
    """Return a descriptor of the network namespace of a sandbox, which `held` closes, `NOTHING` if none can join it.

    It keeps the namespace, whatever becomes of the processes in it. The command `trial` joins it first.
    """
    network = await _opened(process)
    if network == NOTHING:
        return NOTHING
    held.callback(os.close, network)
    beside = StandardStreams(stderr=subprocess.STDOUT, network=network)
    try:
        async with await spawn(trial, folder="/", environment={}, beside=beside, guard=guard) as joined:
            while await joined.read(_READ_BYTES):
                pass
            return network if await joined.wait() == 0 else NOTHING
    except ShellError:  # the kernel refuses to enter it
        return NOTHING


async def _opened(process: SupervisedProcess) -> int:
    deadline = time.monotonic() + _CHILD_SECONDS
    while process.returncode is None and time.monotonic() < deadline:
        with suppress(OSError, IndexError):
            return await asyncio.to_thread(_open_child, process.pid)
        await asyncio.sleep(_POLL_SECONDS)
    return NOTHING


def _open_child(sandbox: int) -> int:
    child = Path(f"/proc/{sandbox}/task/{sandbox}/children").read_text().split()[0]
    return os.open(f"/proc/{child}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
