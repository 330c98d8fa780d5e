"""`python -m bench.hop_trace FILE ARGUMENTS`: `agent` with these arguments, which traces how key `a` is handed on.

A press goes from one task, queue or thread to the next. Each hand-over (a posted message, a scheduled callback, work
for a thread, an update that is published) is noted with the functions of ours on its stack, and with the hand-over that
led to it. The way to a point is the stack there with those of all hand-overs before it. Functions that were called
before the key and only go on, such as the loop of a session, are not counted. FILE gets two lines of JSON: the way to
the journal line of the decision, and on from there to the first line that a widget renders because of it.
"""

import asyncio
import json
import sys
import threading
from asyncio import Handle, TimerHandle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextvars import Context
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeVar, TypeVarTuple

from msgspec import Struct
from textual import events
from textual.message import Message
from textual.message_pump import MessagePump

import agent_workbench
from agent_workbench.adapters.journal.writer import AppendOnlyFile
from agent_workbench.core.live import SessionUpdate

Ts = TypeVarTuple("Ts")
Found = TypeVar("Found")

KEY = "a"
LINE = b'"kind":"action_decided"'
RENDERS = "render_line"
OURS = str(Path(agent_workbench.__file__).parent)


class Handover(Struct, eq=False):
    """The functions of ours that handed the press on, and the hand-over before."""

    before: "Handover | None"
    stack: tuple[CodeType, ...]

    def way(self) -> "list[Handover]":
        """Return all hand-overs up to this one, the first one first."""
        found: list[Handover] = []
        last: Handover | None = self
        while last is not None:
            found.append(last)
            last = last.before
        return found[::-1]


class Way(Struct):
    """Functions of ours on a way, in order, and the number of calls meanwhile: of all, and of those on the way."""

    functions: list[str]
    calls: int
    calls_on_way: int

    @property
    def modules(self) -> set[str]:
        """Modules of the functions."""
        return {each.split(":")[0] for each in self.functions}


class _Thread(threading.local):
    """What led to that which a thread does now; None if the key did not."""

    cause: Handover | None = None


class Trace:
    """What happens after the key, in all threads."""

    def __init__(self, file: Path) -> None:
        self.begun = False
        self._file = file
        self._thread = _Thread()
        self._entered: set[FrameType] = set()
        self._calls: list[Handover | None] = []
        self._updates: dict[int, tuple[SessionUpdate, Handover | None]] = {}
        self._line: Handover | None = None
        self._functions: dict[str, None] = {}

    def begin(self) -> Handover:
        """Begin with a press of the key; one before that did not decide is forgotten."""
        self.begun = True
        self._calls.clear()
        sys.setprofile(self.profile)
        return Handover(None, ())

    @property
    def awaits_key(self) -> bool:
        """True if a key is one from the terminal and not one that a widget hands on, until one has decided."""
        return self._line is None and self._thread.cause is None

    def hand_over(self, frame: FrameType | None) -> Handover | None:
        """Return the hand-over that `frame` makes; None if the key did not lead to it."""
        cause = self._thread.cause
        return Handover(cause, tuple(self._stack(frame))) if self.begun and cause is not None else None

    def take_over(self, cause: Handover | None) -> None:
        """Let what this thread does from now on be the effect of a hand-over."""
        self._thread.cause = cause

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; `sys.setprofile` says what comes in."""
        del argument
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS) or not self.begun:
            return
        if not code.co_code[frame.f_lasti + 1] & 3:  # the argument of RESUME: not a coroutine that goes on
            self._entered.add(frame)
            self._calls.append(self._thread.cause)
        self._follow_update(frame)
        if self._line is None:
            if code is AppendOnlyFile.append.__code__ and LINE in frame.f_locals["data"]:
                self._reach(frame)
                self._line = self._thread.cause
        elif code.co_name == RENDERS and self._is_after(self._line):
            self._reach(frame)
            self.begun = False
            sys.setprofile(None)

    def _follow_update(self, frame: FrameType) -> None:
        """Follow an update of the session from who published it: its reader takes the newest when it has time."""
        for value in frame.f_locals.values():
            if type(value) is not SessionUpdate:
                continue
            if id(value) not in self._updates:
                self._updates[id(value)] = value, self.hand_over(frame)
            made = self._updates[id(value)][1]
            if made is not None and not (self._is_after(made.before) or self._is_after(self._line)):
                self._thread.cause = made

    def _is_after(self, handover: Handover | None) -> bool:
        """Return True if a hand-over led to what is done now."""
        return handover is not None and self._thread.cause is not None and handover in self._thread.cause.way()

    def _reach(self, frame: FrameType) -> None:
        """Write down the way to `frame`; the second one goes on from the first."""
        way = Handover(self._thread.cause, tuple(self._stack(frame))).way()
        self._functions |= dict.fromkeys(_name(code) for each in way for code in each.stack)
        on_way = sum(any(each is cause for cause in way) for each in self._calls)
        with self._file.open("a") as out:
            print(json.dumps([list(self._functions), len(self._calls), on_way]), file=out)

    def _stack(self, frame: FrameType | None) -> Iterator[CodeType]:
        found = []
        while frame is not None:
            if frame in self._entered:
                found.append(frame.f_code)
            frame = frame.f_back
        return reversed(found)


def _name(code: CodeType) -> str:
    """Return module and name of a function."""
    return f"{Path(code.co_filename).relative_to(OURS).with_suffix('')}:{code.co_qualname}"


def tracing_loop(trace: Trace) -> type[asyncio.SelectorEventLoop]:
    """Return an event loop that notes what is scheduled by whom."""

    def bound(callback: Callable[[*Ts], Found], frame: FrameType) -> Callable[[*Ts], Found]:
        cause = trace.hand_over(frame)

        def run(*arguments: *Ts) -> Found:
            trace.take_over(cause)
            return callback(*arguments)

        return run

    class Loop(asyncio.SelectorEventLoop):
        def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> Handle:
            return super().call_soon(bound(callback, sys._getframe(1)), *args, context=context)

        def call_soon_threadsafe(
            self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
        ) -> Handle:
            return super().call_soon_threadsafe(bound(callback, sys._getframe(1)), *args, context=context)

        def call_at(
            self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
        ) -> TimerHandle:
            return super().call_at(when, bound(callback, sys._getframe(1)), *args, context=context)

        def run_in_executor(
            self, executor: Executor | None, func: Callable[[*Ts], Found], *args: *Ts
        ) -> "asyncio.Future[Found]":
            work = bound(func, sys._getframe(1))

            def profiled(*arguments: *Ts) -> Found:
                sys.setprofile(trace.profile if trace.begun else None)
                return work(*arguments)

            return super().run_in_executor(executor, profiled, *args)

    return Loop


def note_messages(trace: Trace) -> None:
    """Let what a message leads to be the effect of who posted it."""
    post, dispatch = MessagePump.post_message, MessagePump._dispatch_message
    causes: dict[int, tuple[Message, Handover | None]] = {}

    def noted(pump: MessagePump, message: Message) -> bool:
        if isinstance(message, events.Key) and message.key == KEY and trace.awaits_key:
            causes[id(message)] = message, trace.begin()
        elif trace.begun:
            causes[id(message)] = message, trace.hand_over(sys._getframe(1))
        return post(pump, message)

    async def dispatched(pump: MessagePump, message: Message) -> None:
        trace.take_over(causes.get(id(message), (message, None))[1])
        await dispatch(pump, message)

    MessagePump.post_message = noted  # type: ignore[assignment, method-assign]
    MessagePump._dispatch_message = dispatched  # type: ignore[assignment, method-assign]


def main() -> None:
    """Run the command."""
    trace = Trace(Path(sys.argv.pop(1)))
    note_messages(trace)

    class Policy(asyncio.DefaultEventLoopPolicy):
        _loop_factory = tracing_loop(trace)

    asyncio.set_event_loop_policy(Policy())
    from agent_workbench.__main__ import main as agent

    agent()


if __name__ == "__main__":
    main()
