"""Process of a server for the client that started it: its pipe and log, and its end at a signal."""

import asyncio
import contextlib
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from types import FrameType
from typing import IO, Any, NoReturn

from agent_workbench.api.screen_services import parent_gone
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.text.sanitizer import sanitize

HANG_UP_SECONDS = 1.5
"""Time to leave sessions once nobody reads what is written; what they run gets the rest of two seconds."""
STOP_SECONDS = 5.0
"""Time to leave them when the process is asked to end."""
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

MAX_MESSAGE_CHARS = 4 * 1024 * 1024
MAX_HEAD_CHARS = 200
"""Characters kept of a message that is too long."""

MAX_ENTRY_CHARS = 20_000


def end_within(seconds: float) -> None:
    """End this process after `seconds` unless it has ended by then; an earlier end that was set before stays.

    The main thread may wait for a full pipe or terminal, or for a lock: the kernel's timer interrupts that. A journal
    has every record by then, and the kernel releases its lock.
    """
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if not left or seconds < left:
        signal.signal(signal.SIGALRM, lambda number, frame: os._exit(ExitCode.INTERRUPTED))
        signal.setitimer(signal.ITIMER_REAL, seconds)


def hear_signals(
    numbers: Iterable[signal.Signals], act: Callable[[signal.Signals], object], *, ending: int = 1
) -> list[signal.Signals]:
    """Call `act` in the running event loop at each of the signals; return the list of those received.

    From the signal number `ending` on the process has a limited time to end. It is noticed even while the loop is
    blocked, where asyncio's own handlers would wait for it.
    """
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def hear(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(signal.Signals(number))
        if len(received) >= ending:
            end_within(HANG_UP_SECONDS if number == signal.SIGHUP else STOP_SECONDS)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends already
            loop.call_soon_threadsafe(act, signal.Signals(number))

    for number in numbers:
        signal.signal(number, hear)
    return received


def not_ignored() -> tuple[signal.Signals, ...]:
    """Return the signals that end a process, without those that were set to be ignored: `nohup` asks for it."""
    return tuple(number for number in END_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


def act_by_default(numbers: Iterable[signal.Signals]) -> None:
    """Have the next of these signals end the process, as it would end any other."""
    for number in numbers:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


async def first_end(serving: Coroutine[Any, Any, None], parent: int) -> None:
    """Serve until that ends, the process `parent` that started this one is gone, or SIGINT, SIGTERM or SIGHUP comes.

    The process then has a limited time to end.
    """
    stopped = asyncio.Event()
    hear_signals(END_SIGNALS, lambda number: stopped.set())
    tasks = {asyncio.ensure_future(each) for each in (serving, stopped.wait(), parent_gone(parent))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        end_within(HANG_UP_SECONDS)
        for task in tasks:
            task.cancel()


def end_process(code: int) -> NoReturn:
    """End this process at once: Python would wait for threads that read the client's pipe or search."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def take_pipe() -> tuple[IO[str], IO[str]]:
    """Return the pipe to read and to write, and leave nothing of it at standard input and output.

    What this process or a child prints by accident cannot get into the protocol, and no child reads from it.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reading, writing = os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
    return (
        io.TextIOWrapper(reading, encoding="utf-8", errors="replace"),
        io.TextIOWrapper(writing, encoding="utf-8", write_through=True),
    )


def bounded_line(stream: IO[str]) -> tuple[str, bool]:
    """Return the next line, empty at the end of the stream, and True; of one that is too long its beginning, and False.

    The rest of a line that is too long is read and dropped.
    """
    line = stream.readline(MAX_MESSAGE_CHARS)
    if len(line) < MAX_MESSAGE_CHARS or line.endswith("\n"):
        return line, True
    while (rest := stream.readline(MAX_MESSAGE_CHARS)) and not rest.endswith("\n"):
        continue
    return line[:MAX_HEAD_CHARS], False


class InertHandler(logging.Handler):
    """Handler that writes to standard error, with control characters made visible and long entries cut."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an entry; a reader that has gone is no error."""
        text = sanitize(self.format(record), limit_chars=MAX_ENTRY_CHARS)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def log_to_stderr() -> None:
    """Send warnings and errors of this process, and of the SDK, to standard error."""
    logging.basicConfig(level=logging.WARNING, handlers=[InertHandler()], force=True)
