"""Bounded output of a command: the stored head and tail, the live stream, and what one that was left running writes."""

import asyncio
import codecs
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ShellError
from agent_workbench.core.ports.tools import NOTHING, StandardStreams
from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.system.processes import Guard, ProcessUser, SupervisedProcess, spawn

_CONTINUATION = range(0x80, 0xC0)
_LONGEST_SEQUENCE = 4

KEPT_BYTES = 64 * 1024
# At most one piece in each pause: a command that floods waits, and costs neither memory nor processor time.
_READ_BYTES, _PAUSE_SECONDS = 32 * 1024, 0.1
_LIVE_BYTES, _LIVE_SECONDS = 16 * 1024, 0.5
# For its last words in the pipe after it has ended.
_REST_SECONDS = 1.0
_CHILD_SECONDS, _POLL_SECONDS = 5.0, 0.01


def cut_line(count: int) -> str:
    """Return the line that replaces `count` removed bytes."""
    return f"… {count} bytes cut …\n"


class KeptOutput:
    """Head and tail of the output, each half of `limit_bytes`, and the number of bytes between them."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, piece: bytes) -> None:
        """Add the next bytes; memory stays below twice the limit."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self._cut += over

    def text(self) -> tuple[str, int]:
        """Return the text, with a line in place of removed bytes, and their number."""
        self._trim()
        if not self._cut:
            return (self._head + self._tail).decode("utf-8", "replace"), 0
        head, tail = _without_torn_end(self._head), _without_torn_start(self._tail)
        cut = self._cut + len(self._head) - len(head) + len(self._tail) - len(tail)
        before = head.decode("utf-8", "replace")
        between = "" if before.endswith("\n") or not before else "\n"
        return f"{before}{between}{cut_line(cut)}{tail.decode('utf-8', 'replace')}", cut


def _without_torn_end(data: bytearray) -> bytearray:
    """Remove an incomplete UTF-8 sequence at the end."""
    for back in range(1, min(_LONGEST_SEQUENCE, len(data)) + 1):
        byte = data[-back]
        if byte in _CONTINUATION:
            continue
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data[:-back] if length > back else data
    return data


def _without_torn_start(data: bytearray) -> bytearray:
    for position, byte in enumerate(data[:_LONGEST_SEQUENCE]):
        if byte not in _CONTINUATION:
            return data[position:]
    return data


class LiveOutput:
    """Live stream of output: at most one piece every `every_seconds`, each of at most `limit_bytes`."""

    def __init__(self, on_output: OnOutput, every_seconds: float, limit_bytes: int) -> None:
        self._on_output = on_output
        self._every = every_seconds
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._cut = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._last = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def add(self, piece: bytes) -> None:
        """Add the next bytes; they are sent now, or with others at the end of the interval."""
        self._waiting += piece
        over = len(self._waiting) - self._limit
        if over > 0:
            del self._waiting[:over]
            self._cut += over
        if self._timer is not None:
            return
        wait = self._last + self._every - self._loop.time()
        if wait <= 0:
            self._pass_on(final=False)
        else:
            self._timer = self._loop.call_later(wait, self._on_time)

    def close(self) -> None:
        """Send the remaining output."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_on(final=True)

    def _on_time(self) -> None:
        self._timer = None
        self._pass_on(final=False)

    def _pass_on(self, *, final: bool) -> None:
        data, cut = self._waiting, self._cut
        self._waiting, self._cut = bytearray(), 0
        text = ""
        if cut:
            self._decoder.reset()
            text, data = cut_line(cut), _without_torn_start(data)
        text += self._decoder.decode(data, final)
        self._last = self._loop.time()
        if text:
            self._on_output(text)


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
