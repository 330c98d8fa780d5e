"""The command that a task has left running: at most one, what is told of its output, and its end."""

import asyncio

from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ShellError
from agent_workbench.core.live import LeftRunning
from agent_workbench.core.ports.workspace import BackgroundCommand, Command, Shell
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.engine.runtime.publisher import TAIL_CHARS, UpdatePublisher

NONE = "No command is left running. One ends with the task, and when the workbench is closed."
NO_OUTPUT = "(no output)"
READ_CHARS, NEWS_CHARS = 3_000, 1_500
START_SECONDS = 3.0
"""Seconds for the first output of a command; without any, it is told of as left running all the same."""
CALM_SECONDS = 0.3
"""Seconds for the output that follows the first one, or that another command has caused."""
LEFT = """\
Left running. {reach} It can only read the workspace, and it ends with the task. `background` reads its last lines, \
and stops it."""
REACHED = "Commands after this one reach it at 127.0.0.1; checks do not."
SHARED = "Commands and checks reach it at 127.0.0.1."
UNREACHED = "No other command can reach it: the kernel refuses to share its network."
ENDED_AT_ONCE = """\
It ended at once: {how}. What is left running has to stay in front, because what it starts in the background ends with \
it, and it can write to $TMPDIR only."""


class BackgroundHolder:
    """Owner of the command that is left running. Its texts are for the model; each is bounded."""

    def __init__(self, publisher: UpdatePublisher) -> None:
        self._publisher = publisher
        self._command: BackgroundCommand | None = None
        self._following: asyncio.Task[None] | None = None
        self._shown = LeftRunning("")
        self._spoke = asyncio.Event()
        self._told = 0

    @property
    def runs(self) -> bool:
        """True while a command is left running."""
        return self._command is not None and self._command.outcome is None

    def check_free(self) -> None:
        """Raise `ShellError` while a command is left running: two can be one line."""
        if self.runs:
            raise ShellError(
                f"one command is left running already: {self._shown.line}",
                advice='first stop it: background {"action": "stop"}; two that belong together are one line: `a & b &`',
            )

    async def start(self, shell: Shell, command: Command) -> str:
        """Leave a command running and return what it did at first. Raises `ShellError`."""
        self.check_free()
        await self.stop()
        self._shown, self._told, self._spoke = LeftRunning(command.line.strip()), 0, asyncio.Event()
        self._command = started = await shell.start(command, self._take)
        try:
            self._following = in_background(self._follow(started))
            self._publisher.show_left_running(self._shown)
            await self._settle()
        except BaseException:
            await self.stop()
            raise
        said = self._news(NEWS_CHARS) or NO_OUTPUT
        if started.outcome is not None:
            await self.stop()
            return f"{ENDED_AT_ONCE.format(how=how_ended(started.outcome))}\n{said}"
        reach = SHARED if started.shared else REACHED if started.reachable else UNREACHED
        return f"{LEFT.format(reach=reach)}\nIts output so far:\n{said}"

    async def news(self) -> str:
        """Return what was written since the model was told, and whether the command has ended; empty without news."""
        if self._command is None:
            return ""
        await asyncio.sleep(CALM_SECONDS)
        said, outcome = self._news(NEWS_CHARS), self._command.outcome
        if outcome is not None:
            await self.stop()
            return f"\n\nThe command left running has ended: {how_ended(outcome)}\n{said or NO_OUTPUT}"
        return f"\n\nWritten by the command left running:\n{said}" if said else ""

    def last_lines(self) -> str:
        """Return the last lines of the command, whether they were told or not."""
        command = self._command
        if command is None:
            return NONE
        self._told = 0
        said = self._news(READ_CHARS) or NO_OUTPUT
        ended = f"It has ended: {how_ended(command.outcome)}" if command.outcome is not None else "It runs."
        return f"{self._shown.line}\n{ended}\n{said}"

    async def stop(self) -> str:
        """End the command and all that it started; return its last words."""
        command, self._command = self._command, None
        if command is None:
            return NONE
        self._publisher.show_left_running(None)
        if self._following is not None:
            self._following.cancel()
        ran = command.outcome is None
        outcome = await command.stop()
        self._told, text = 0, _last(*command.tail(self._told), self._told, NEWS_CHARS)
        how = f"Stopped after {outcome.seconds:.0f} s" if ran else f"It had ended: {how_ended(outcome)}"
        return f"{how}\n{text}" if text else how

    def _news(self, most_chars: int) -> str:
        if self._command is None:
            return ""
        text, written = self._command.tail(self._told)
        told, self._told = self._told, written
        return _last(text, written, told, most_chars)

    async def _settle(self) -> None:
        """Wait for the first output or the end, not for long."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._spoke.wait()
        except TimeoutError:
            return
        await asyncio.sleep(CALM_SECONDS)

    async def _follow(self, command: BackgroundCommand) -> None:
        outcome = await command.wait()
        self._show(LeftRunning(self._shown.line, self._shown.tail, how_ended(outcome)))

    def _take(self, text: str) -> None:
        self._show(LeftRunning(self._shown.line, (self._shown.tail + text)[-TAIL_CHARS:], self._shown.ended))

    def _show(self, shown: LeftRunning) -> None:
        self._shown = shown
        self._spoke.set()
        self._publisher.show_left_running(shown)


def how_ended(outcome: CommandOutcome) -> str:
    """Return the exit code of a command, or why it has none."""
    return outcome.reason or f"exit code {outcome.exit_code}"


def _last(text: str, written: int, told: int, most_chars: int) -> str:
    """Return the end of the bytes from `told` to `written`, of which `text` is the end; what is missing is stated."""
    kept = text[-most_chars:]
    missing = written - told - len(kept.encode("utf-8", "replace"))
    if missing <= 0:
        return kept.strip("\n")
    whole = kept.partition("\n")[2] or kept  # the first line is torn
    missing += len(kept.encode("utf-8", "replace")) - len(whole.encode("utf-8", "replace"))
    return f"… {missing} bytes before this …\n{whole}".rstrip("\n")
