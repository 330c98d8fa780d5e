"""The port `Hooks`: each hook is a command line in a shell of its own grants, with a folder that is gone afterwards."""

import asyncio
import contextlib
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping

from msgspec import Struct

from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.hook_answers import MAX_ANSWER_CHARS, HookOutcome
from agent_workbench.core.ports.workspace import Command, Shell
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings.extensions import HookPoint, HookSettings
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.system.folder_trees import remove_tree

EVENT_VARIABLE = "AGENT_HOOK_EVENT"
_LAST_LINE_CHARS = 300


class HookCommand(Struct, frozen=True):
    """A hook with the shell that runs it. `of_repo`: the repository brings it, so it runs only as long as trusted."""

    settings: HookSettings
    shell: Shell
    of_repo: bool


class HookCommands:
    """Runs the hooks of the repository at `repo`. `trusted` tells whether the hook of a name is as trusted; may block.

    A hook of the repository starts in the repository, one of the user's in an empty folder. A confined one reads both
    the repository and the worktree, and writes nothing but its own temporary folder.
    """

    def __init__(
        self, hooks: Mapping[str, HookCommand], repo: str, trusted: Callable[[str], bool], hidden: tuple[str, ...] = ()
    ) -> None:
        self._hooks = hooks
        self._repo = repo
        self._trusted = trusted
        self._hidden = hidden

    async def run(self, name: str, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        hook = self._hooks.get(name)
        if hook is None:
            return HookOutcome(failure="it is not in the settings any more")
        try:
            if obstacle := await self._obstacle(name, hook):
                return HookOutcome(failure=obstacle)
            return await self._run(hook, point, document, workspace)
        except WorkbenchError as error:
            return HookOutcome(failure=error_text(error))
        except OSError as error:
            return HookOutcome(failure=f"it could not be run: {error}")

    async def _obstacle(self, name: str, hook: HookCommand) -> str:
        if hook.of_repo and not await asyncio.to_thread(self._trusted, name):
            return "it, or a file that it names, changed since it was trusted; `agent trust` shows what"
        if hook.settings.unconfined:
            return ""
        sandbox = await hook.shell.observe()
        return "" if sandbox.holds else f"no sandbox works here ({sandbox.why}), and its entry is not `unconfined`"

    async def _run(self, hook: HookCommand, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        temporary = await asyncio.to_thread(_make_folder)
        try:
            # On a line of its own: whatever the command's line is, nothing of it runs in another folder.
            enter = f"cd {shlex.quote(self._repo)} || exit 1\n" if hook.of_repo else ""
            command = Command(
                line=f"{enter}{hook.settings.command}",
                folder=temporary,
                timeout_seconds=hook.settings.timeout_seconds,
                environment={EVENT_VARIABLE: point.value, "TMPDIR": temporary},
                readable=tuple(filter(None, (self._repo, workspace))),
                hidden=self._hidden,
                apart=True,
                private=True,
                stdin=document,
            )
            return _outcome(await hook.shell.run(command, lambda _: None))
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, temporary))


def _outcome(done: CommandOutcome) -> HookOutcome:
    output = done.output[: MAX_ANSWER_CHARS + 1]
    failure = done.reason or (_exit_text(done) if done.exit_code else "")
    if not failure and done.cut_bytes:
        failure = f"it printed too much: {done.cut_bytes:,} bytes were cut"
    return HookOutcome(output, failure, done.seconds)


def _exit_text(done: CommandOutcome) -> str:
    """Return the exit code with the last line of the error output."""
    lines = (done.stderr[-20_000:].strip() or done.output[-20_000:].strip()).splitlines()
    said = sanitize_line(lines[-1], _LAST_LINE_CHARS) if lines else ""
    return f"exit code {done.exit_code}{f': {said}' if said else ''}"


def _make_folder() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="agent-hook-"))


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        remove_tree(folder)
