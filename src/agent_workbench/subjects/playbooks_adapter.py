"""Port `Playbooks` with the programs of the bundled skill: runs with the user's keys, lint, and templates.

Only a run gets the network and the user's keys. Values for it go through standard input, so that no password is an
argument or a variable of a process.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, ShellError, StorageError, ToolError, error_text
from agent_workbench.core.playbooks import (
    REASONS,
    LintCategory,
    LintFinding,
    LintReport,
    PlaybookRequest,
    PlaybookSearch,
    RunAccess,
)
from agent_workbench.core.ports.workspace import Command, OnOutput, Shell, Sources
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings.extensions import InfrastructureSettings, expand_home
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.subjects.playbooks_search_adapter import TextVectors, list_playbooks, search_playbooks
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.programs import clean_path

AGENT = "SSH_AUTH_SOCK"
KNOWN_EVERYWHERE = "/etc/ssh/ssh_known_hosts"

SKILL = "ansible-playbooks"
RENDER_SECONDS = 30.0
_FOUND_SOMETHING = 2
"""Exit code of ansible-lint where it finds something."""

MANY, KEPT = 100, 50
"""Of more than `MANY` findings the first `KEPT` are kept, by severity."""
_TEXT_CHARS, _PATH_CHARS = 200, 200
_SEVERITIES = ("blocker", "critical", "major", "minor", "info")
_RULE = re.compile(r"[a-z][a-z0-9-]{0,60}")
_OF_TAG: tuple[tuple[str, LintCategory], ...] = (
    ("idempotency", LintCategory.IDEMPOTENCY),
    ("unpredictability", LintCategory.ERROR_HANDLING),
    ("core", LintCategory.ERROR_HANDLING),
    ("performance", LintCategory.PERFORMANCE),
    ("formatting", LintCategory.STANDARDS),
    ("metadata", LintCategory.STANDARDS),
)


class UserKeys(Struct, frozen=True):
    """Keys of the user for a run: key files, socket of the SSH agent, file of known hosts, and passwords by kind."""

    files: tuple[str, ...] = ()
    agent: str = ""
    known_hosts: str = ""
    passwords: Mapping[str, str] = {}

    @property
    def ssh_arguments(self) -> str:
        """Options of `ssh`: these keys and known hosts, no settings of the user and no shared connections."""
        options = [
            *("-F", "/dev/null", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "BatchMode=yes"),
            *(
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                f"UserKnownHostsFile={_quoted(self.known_hosts or '/dev/null')}",
            ),
            *(
                "-o",
                f"GlobalKnownHostsFile={KNOWN_EVERYWHERE}",
                "-o",
                f"IdentityAgent={'SSH_AUTH_SOCK' if self.agent else 'none'}",
            ),
            *(word for file in self.files for word in ("-i", _quoted(file))),
            *(("-o", "IdentitiesOnly=yes") if self.files and not self.agent else ()),
        ]
        return " ".join(options)


def named_access(settings: InfrastructureSettings) -> RunAccess:
    """Return the names of what the settings let a run use, as a gate shows them."""
    named = (("the vault password", settings.vault_password_env), ("the become password", settings.become_password_env))
    passwords = tuple(f"{what} in {variable}" for what, variable in named if variable)
    return RunAccess(settings.ssh_keys, settings.ssh_agent, passwords)


def user_keys(settings: InfrastructureSettings, environ: Mapping[str, str]) -> UserKeys:
    """Return what the settings name; raise `ConfigError` for what is not there. Blocks."""
    home = environ.get("HOME", "")
    known = Path(expand_home(settings.known_hosts, home)) if settings.known_hosts else None
    return UserKeys(
        files=tuple(_key_file(each, home) for each in settings.ssh_keys),
        agent=_agent(environ) if settings.ssh_agent else "",
        known_hosts=str(known.resolve()) if known is not None and known.is_file() else "",
        passwords={
            name: _password(variable, environ)
            for name, variable in (("vault", settings.vault_password_env), ("become", settings.become_password_env))
            if variable
        },
    )


def _key_file(said: str, home: str) -> str:
    path = Path(expand_home(said, home))
    if not path.is_absolute() or not path.is_file():
        raise ConfigError(
            f"infrastructure.ssh_keys: {said} is no file", advice="name the private key with an absolute path or `~/`"
        )
    return str(path.resolve())


def _agent(environ: Mapping[str, str]) -> str:
    path = environ.get(AGENT, "")
    try:
        there = bool(path) and stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - the path may be of another user
    except OSError:
        there = False
    if not there:
        raise ConfigError(
            f"infrastructure.ssh_agent is set, and {AGENT} names no socket", advice="start ssh-agent, or unset it"
        )
    return str(Path(path).resolve())


def _password(variable: str, environ: Mapping[str, str]) -> str:
    value = environ.get(variable, "")
    if not value:
        raise ConfigError(
            f"the environment variable {variable} is empty", advice="set it, or remove its name from `infrastructure`"
        )
    return value


def _quoted(path: str) -> str:
    """Return a path for `ANSIBLE_SSH_ARGS`, which Ansible splits like a shell."""
    return shlex.quote(path)


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


def read_findings(output: str) -> LintReport:
    """Return the findings in the JSON that ansible-lint printed; raise `ToolError` if it is not such a list."""
    start = output.find("[")
    try:
        listed = read_bounded_json(output[start:].strip()) if start >= 0 else None
    except JsonError as error:
        raise ToolError(f"ansible-lint printed no JSON: {error}") from error
    if not isinstance(listed, list):
        raise ToolError("ansible-lint printed no list of findings", advice="its output is in the log of the run")
    found = sorted((_finding(each) for each in listed if isinstance(each, dict)), key=_order)
    kept = found[:KEPT] if len(found) > MANY else found
    return LintReport(tuple(kept), len(found) - len(kept))


def _order(finding: LintFinding) -> tuple[int, str, int, str]:
    return _SEVERITIES.index(finding.severity), finding.path, finding.line, finding.rule


def _finding(said: Mapping[str, JsonValue]) -> LintFinding:
    rule = _text(said.get("check_name"), 80) or "unknown"
    named = _RULE.match(rule)
    described = _text(said.get("description")) or "no description"
    tags = said.get("categories")
    category, reason = REASONS.get(named[0] if named else "", (_by_tags(tags), described))
    location = said.get("location")
    place = location if isinstance(location, dict) else {}
    severity = _text(said.get("severity"), 20)
    known = severity if severity in _SEVERITIES else "minor"
    return LintFinding(rule, _text(place.get("path"), _PATH_CHARS), _line(place), known, category, described, reason)


def _by_tags(tags: JsonValue) -> LintCategory:
    said = tags if isinstance(tags, list) else []
    return next((category for tag, category in _OF_TAG if tag in said), LintCategory.BEST_PRACTICES)


def _line(place: Mapping[str, JsonValue]) -> int:
    """Return the line of a finding: under `lines` or `positions`, as a number or as an object. 0 if it has none."""
    for name in ("lines", "positions"):
        within = place.get(name)
        begin = within.get("begin") if isinstance(within, dict) else None
        line = begin.get("line") if isinstance(begin, dict) else begin
        if isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 10_000_000:
            return line
    return 0


def _text(said: JsonValue, most: int = _TEXT_CHARS) -> str:
    return sanitize_line(said, most) if isinstance(said, str) else ""
