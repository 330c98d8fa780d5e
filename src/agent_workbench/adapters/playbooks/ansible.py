"""Implementation of the port `Playbooks` with ansible-runner, ansible-lint and Jinja2 of the bundled skill.

Only a run gets the network and the user's keys. Values for it go through standard input, so that no password is an
argument or a variable of a process.
"""

import asyncio
import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.playbooks.lint_output import read_findings
from agent_workbench.adapters.playbooks.search import TextVectors, list_playbooks, search_playbooks
from agent_workbench.adapters.playbooks.user_keys import AGENT, UserKeys, named_access, user_keys
from agent_workbench.core.errors import ConfigError, ShellError, StorageError, ToolError, error_text
from agent_workbench.core.playbooks.access import PlaybookRequest, RunAccess
from agent_workbench.core.playbooks.catalogue import PlaybookSearch
from agent_workbench.core.playbooks.lint import LintReport
from agent_workbench.core.ports.workspace import Command, OnOutput, Shell, Sources
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings.infrastructure import InfrastructureSettings
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.programs import clean_path

SKILL = "ansible-playbooks"
RENDER_SECONDS = 30.0
_FOUND_SOMETHING = 2
"""Exit code of ansible-lint where it finds something."""


class AnsiblePrograms(Struct, frozen=True):
    """Environment of the bundled skill: its interpreter, its folder, the skill's folder, and compiled files."""

    python: Path
    environment: Path
    skill: Path
    bytecode: Path | None = None


class RunBounds(Struct, frozen=True):
    """The repo, the user's `PATH`, and paths that no playbook sees."""

    root: str
    path: str
    hidden: tuple[str, ...] = ()


class AnsiblePlaybooks:
    """Playbooks of one repo. `online` runs commands with network, `shell` without."""

    def __init__(
        self,
        settings: InfrastructureSettings,
        environ: Mapping[str, str],
        shell: Shell,
        online: Shell,
        bounds: RunBounds,
        programs: Callable[[], Awaitable[AnsiblePrograms]],
        trusted: Callable[[], bool],
        vectors: TextVectors | None = None,
    ) -> None:
        """`programs` raises `ToolError` where the environment is missing; `trusted` may block."""
        self._settings = settings
        self._environ = environ
        self._shell = shell
        self._online = online
        self._bounds = bounds
        self._programs = programs
        self._trusted = trusted
        self._vectors = vectors

    @property
    def access(self) -> RunAccess:
        return named_access(self._settings)

    async def search(self, files: Sources, words: str) -> PlaybookSearch:
        return await search_playbooks(await list_playbooks(files), words, self._vectors)

    async def obstacle(self) -> str:
        try:
            await self._ready()
            await asyncio.to_thread(user_keys, self._settings, self._environ)
        except (ConfigError, StorageError, ToolError) as error:
            return error_text(error)
        return ""

    async def run(self, request: PlaybookRequest, folder: str, seconds: float, on_output: OnOutput) -> CommandOutcome:
        programs = await self._ready()
        keys = await asyncio.to_thread(user_keys, self._settings, self._environ)
        given: dict[str, JsonValue] = {**msgspec.to_builtins(request), "passwords": dict(keys.passwords)}
        given["extra_vars"] = read_bounded_json(request.extra_vars) if request.extra_vars else {}
        most = min(seconds, self._settings.run_seconds)
        command = await asyncio.to_thread(self._command, programs, ("run_playbook.py",), folder, most, keys)
        known = (keys.known_hosts,) if keys.known_hosts else ()
        command = replace(
            command,
            stdin=json.dumps(given),
            writable=(keys.agent,) if keys.agent else (),
            keys=(*keys.files, *known),
        )
        return await self._online.run(command, on_output)

    async def lint(self, playbook: str, folder: str, seconds: float) -> LintReport:
        programs = await self._ready()
        inside = await asyncio.to_thread(os.path.realpath, folder)
        try:
            done = await self._apart(programs, ("lint_playbook.py", inside, f"./{playbook}"), seconds, (inside,))
        except ShellError as error:
            return LintReport(problem=error_text(error))
        if done.exit_code not in {0, _FOUND_SOMETHING} and not done.output.lstrip().startswith("["):
            said = (done.stderr or done.output).strip()[-300:]
            return LintReport(problem=f"{done.reason or f'exit code {done.exit_code}'}: {quoted(said)}")
        try:
            return await asyncio.to_thread(read_findings, done.output)
        except ToolError as error:
            return LintReport(problem=str(error))

    async def render(self, values: Mapping[str, str]) -> Mapping[str, str]:
        programs = await self._ready()
        script = ("render_templates.py",)
        done = await self._apart(programs, script, RENDER_SECONDS, stdin=json.dumps(dict(values)))
        try:
            rendered = read_bounded_json(done.output) if done.exit_code == 0 else None
        except JsonError:
            rendered = None
        if not isinstance(rendered, dict):
            said = (done.stderr or done.output).strip()[-300:]
            raise ToolError(f"the templates were not rendered: {done.reason or f'exit code {done.exit_code}'}: {said}")
        return {name: text for name, text in rendered.items() if isinstance(text, str)}

    async def close(self) -> None:
        if self._vectors is not None:
            await self._vectors.close()

    async def _ready(self) -> AnsiblePrograms:
        """Return the programs; raise `ToolError` without trust or environment."""
        if not await asyncio.to_thread(self._trusted):
            raise ToolError(
                "no playbook is run: the repository is not trusted, and Ansible loads its settings and plugins",
                advice="`agent trust` shows what it brings",
            )
        return await self._programs()

    async def _apart(
        self,
        programs: AnsiblePrograms,
        words: Sequence[str],
        seconds: float,
        readable: tuple[str, ...] = (),
        stdin: str = "",
    ) -> CommandOutcome:
        """Run a script with arguments, without network and keys; it writes to a temporary folder only."""
        temporary = await asyncio.to_thread(_temporary_folder)
        try:
            command = await asyncio.to_thread(self._command, programs, words, temporary, seconds, UserKeys())
            command = replace(
                command,
                readable=(*command.readable, *readable),
                apart=True,
                stdin=stdin,
            )
            return await self._shell.run(command, lambda _: None)
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, temporary))

    def _command(
        self, programs: AnsiblePrograms, words: Sequence[str], folder: str, seconds: float, keys: UserKeys
    ) -> Command:
        """Return the command of a script with its arguments. Blocks."""
        script, *arguments = words
        # `-I`: neither the folder that it starts in nor the user's packages are imported.
        argv = (str(programs.python), "-I", str(programs.skill / "scripts" / script), *arguments)
        home = programs.python.resolve().parent.parent
        return Command(
            line=f"exec {shlex.join(argv)}",
            folder=folder,
            timeout_seconds=seconds,
            environment=self._variables(programs, keys),
            readable=(os.path.realpath(programs.skill), str(programs.environment), str(home)),
            hidden=self._bounds.hidden,
            private=True,
        )

    def _variables(self, programs: AnsiblePrograms, keys: UserKeys) -> Mapping[str, str]:
        path = clean_path(self._bounds.path, self._bounds.root)
        variables = {
            "ANSIBLE_FORCE_COLOR": "0",
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_NOCOLOR": "1",
            # Not `~`, which on this machine is the home folder in /etc/passwd, and not that of the sandbox.
            "ANSIBLE_REMOTE_TEMP": "$HOME/.ansible/tmp",
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
            "ANSIBLE_SSH_ARGS": keys.ssh_arguments,
            "PATH": os.pathsep.join((str(programs.environment / "bin"), path)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONUNBUFFERED": "1",
            "VIRTUAL_ENV": str(programs.environment),
        }
        variables |= {AGENT: keys.agent} if keys.agent else {}
        return variables | ({"PYTHONPYCACHEPREFIX": str(programs.bytecode)} if programs.bytecode else {})


def _temporary_folder() -> str:
    return os.path.realpath(tempfile.mkdtemp(prefix="agent-playbook-"))


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        remove_tree(folder)
