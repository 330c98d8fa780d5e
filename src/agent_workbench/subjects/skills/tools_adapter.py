"""The source `skill` of tools: list skills, read them and their files, and run a script with one in the sandbox."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_workbench.core.errors import ConfigError, ShellError, StorageError, ToolError, error_text
from agent_workbench.core.ports.extensions import Skills
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.ports.workspace import Command, OnOutput, Shell
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.skills import FILE, SkillEntry, SkillOrigin, check_named
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.tools.skill_tools import (
    GET_SKILL,
    LIST_SKILLS,
    READ_FILE_IN_SKILL,
    RUN_PYTHON_SCRIPT,
    SKILL_SPECS,
    SOURCE,
    ScriptCall,
)
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, JsonValue, read_bounded_json
from agent_workbench.subjects.skills.environment_adapter import Requirements, SkillEnvironment, SkillEnvironments
from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup
from agent_workbench.system.folder_trees import remove_tree
from agent_workbench.system.programs import clean_path

MAX_STREAM_CHARS = 90_000
MAX_NAMED = 20
SCRIPT_FILE = "script.py"
_BOM = "\ufeff"
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '([A-Za-z0-9_.]{1,100})'", re.MULTILINE)
_READ_ONLY = re.compile(r"^OSError: \[Errno 30\] ", re.MULTILINE)

_REFUSALS = (ConfigError, ShellError, StorageError, ToolError)


class ScriptBounds(Struct, frozen=True):
    """Limits of scripts: their time, and paths that they do not see. `path` is the user's `PATH`, `root` the repo."""

    seconds: float
    root: str
    path: str
    hidden: tuple[str, ...] = ()


class ScriptOutcome(Struct, frozen=True):
    """Outcome of a script; `files` are those that it left in its temporary folder, which is gone."""

    call: ScriptCall
    outcome: CommandOutcome
    seconds: float
    files: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        """True if the script was stopped because its time was over."""
        return self.outcome.timed_out

    @property
    def text(self) -> str:
        """The outcome for the model: how it ended, both streams, and advice where the cause is known."""
        ended = self.outcome.reason or f"exit code {self.outcome.exit_code}"
        if self.timed_out:
            ended = f"stopped after {self.seconds:g} s, the limit for scripts; its output until then:"
        stdout, stderr = _clip(self.outcome.output), _clip(self.outcome.stderr)
        parts = [ended, f"stdout:\n{stdout}" if stdout.strip() else "stdout: empty"]
        parts += [f"stderr:\n{stderr}"] if stderr.strip() else []
        if self.files:
            parts.append(f"It wrote to TMPDIR, which is removed after the run: {', '.join(self.files)}")
        return "\n".join(part.rstrip("\n") for part in [*parts, *self._advice()])

    @property
    def structured(self) -> str:
        """The outcome as a JSON object."""
        fields = {
            "skill_name": self.call.skill,
            "script": self.call.script,
            "stdout": _clip(self.outcome.output),
            "stderr": _clip(self.outcome.stderr),
            "returncode": self.outcome.exit_code,
            "timed_out": self.timed_out,
        }
        return json.dumps(fields, ensure_ascii=False)

    def _advice(self) -> list[str]:
        advice = []
        if missing := _MISSING.search(self.outcome.stderr):
            package = missing[1].partition(".")[0]
            advice.append(
                f"The environment of the skill has no module {package!r}. The user can add its package to the skill's "
                f"requirements.txt and run `agent skills setup {self.call.skill}`."
            )
        if _READ_ONLY.search(self.outcome.stderr):
            advice.append("The skill's folder is read-only: write to TMPDIR (tempfile.gettempdir()).")
        return advice


async def run_script(
    shell: Shell,
    skill: SkillEntry,
    environment: SkillEnvironment,
    call: ScriptCall,
    bounds: ScriptBounds,
    on_output: OnOutput,
) -> ScriptOutcome:
    """Run the script and return its outcome; its temporary folder is gone then. Raises `ShellError`, `OSError`."""
    temporary = await asyncio.to_thread(_prepare, call.script)
    try:
        command = await asyncio.to_thread(_command, skill, environment, bounds, temporary)
        outcome = await shell.run(command, on_output)
        files = await asyncio.to_thread(_left_files, temporary)
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, temporary))
    return ScriptOutcome(call, _with_plain_name(outcome, temporary), bounds.seconds, files)


def _prepare(script: str) -> str:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="agent-script-"))
    # With this mark at its start Python reads the file as UTF-8 or not at all, whatever a comment in it says: under
    # another encoding the text that was shown could be other code.
    Path(folder, SCRIPT_FILE).write_text(_BOM + script, encoding="utf-8", newline="")
    return folder


def _command(skill: SkillEntry, environment: SkillEnvironment, bounds: ScriptBounds, temporary: str) -> Command:
    folder, program = os.path.realpath(skill.folder), str(environment.python)
    return Command(
        # The command starts in its temporary folder, the only one that it may write to.
        line=f"cd {shlex.quote(folder)} && exec {shlex.quote(program)} {shlex.quote(f'{temporary}/{SCRIPT_FILE}')}",
        folder=temporary,
        timeout_seconds=bounds.seconds,
        environment=_variables(folder, environment, bounds, temporary),
        readable=(folder, str(environment.folder), str(environment.python.resolve().parent.parent)),
        hidden=bounds.hidden,
        apart=True,
        private=True,
    )


def _variables(folder: str, environment: SkillEnvironment, bounds: ScriptBounds, temporary: str) -> Mapping[str, str]:
    variables = {
        "PATH": os.pathsep.join((str(environment.python.parent), clean_path(bounds.path, bounds.root, folder))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": folder,
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": temporary,
        "VIRTUAL_ENV": str(environment.folder),
    }
    return variables | ({"PYTHONPYCACHEPREFIX": str(environment.bytecode)} if environment.bytecode else {})


def _left_files(temporary: str) -> tuple[str, ...]:
    """Return what the script left in its temporary folder: names with sizes, the first of many."""
    found: list[str] = []
    with os.scandir(temporary) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name == SCRIPT_FILE:
                continue
            size = (
                "folder"
                if entry.is_dir(follow_symlinks=False)
                else f"{entry.stat(follow_symlinks=False).st_size} bytes"
            )
            found.append(f"{entry.name!r} ({size})")
    more = len(found) - MAX_NAMED
    return (*found[:MAX_NAMED], f"and {more} more") if more > 0 else tuple(found)


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        remove_tree(folder)


def _with_plain_name(outcome: CommandOutcome, temporary: str) -> CommandOutcome:
    """Return the outcome with the script's file by its name alone, and its first line without the mark."""
    path = f"{temporary}/{SCRIPT_FILE}"
    return CommandOutcome(
        outcome.exit_code,
        outcome.output.replace(path, SCRIPT_FILE),
        outcome.seconds,
        outcome.cut_bytes,
        outcome.reason,
        outcome.stderr.replace(path, SCRIPT_FILE).replace(f"\n    {_BOM}", "\n    "),
    )


def _clip(text: str) -> str:
    if len(text) <= MAX_STREAM_CHARS:
        return text
    half = MAX_STREAM_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters cut …\n{text[-half:]}"


class SkillTools:
    """The tools of skills for executor, chat and MCP. `setup` makes the environment of a skill that needs no packages.

    A script runs within `bounds`. What cannot be done is a failed answer that names the cause.
    """

    def __init__(
        self,
        skills: Skills,
        shell: Shell,
        environments: SkillEnvironments,
        setup: EnvironmentSetup,
        bounds: ScriptBounds,
        trusted: Callable[[], bool],
    ) -> None:
        """`trusted` tells whether the repo's skills are as the user trusted them; it may block."""
        self._trusted = trusted
        self._skills = skills
        self._shell = shell
        self._environments = environments
        self._setup = setup
        self._bounds = bounds

    @property
    def name(self) -> str:
        return SOURCE

    async def list_tools(self) -> Sequence[ToolSpec]:
        return SKILL_SPECS

    async def obstacle(self, tool: str, arguments: str) -> str:
        if tool != RUN_PYTHON_SCRIPT:
            return ""
        try:
            given = _texts(arguments)
            skill = await self._named(given.get("skill_name", ""))
            await self._environment(skill, given.get("script", ""))
        except _REFUSALS as error:
            return error_text(error)
        return ""

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        try:
            return await self._call(tool, _texts(arguments), on_output)
        except _REFUSALS as error:
            return SourceResult(error_text(error), failed=True)
        except JsonError as error:
            return SourceResult(f"the arguments are no JSON: {error}", failed=True)

    async def close(self) -> None:
        """Do nothing: no call outlives itself."""

    async def _call(self, tool: str, given: Mapping[str, str], on_output: OnOutput) -> SourceResult:
        name = given.get("skill_name", "")
        if tool == LIST_SKILLS:
            return await self._list()
        skill = await self._named(name)
        if tool == GET_SKILL:
            text = await self._whole(name)
            return SourceResult(text, structured=_json(skill_name=name, content=text))
        if tool == READ_FILE_IN_SKILL:
            path = given.get("file_path", "")
            text = await self._skills.read_file(name, path)
            return SourceResult(text, structured=_json(skill_name=name, file_path=path, content=text))
        if tool == RUN_PYTHON_SCRIPT:
            return await self._run(skill, ScriptCall(name, given.get("script", "")), on_output)
        raise ToolError(f"the skills bring no tool {quoted(tool)}")

    async def _list(self) -> SourceResult:
        usable = [each for each in await self._skills.list() if each.usable and not each.role]
        lines = [f"{each.name}: {each.description} ({each.tokens} tokens)" for each in usable]
        listed: list[JsonValue] = [
            {"name": each.name, "description": each.description, "tokens": each.tokens} for each in usable
        ]
        return SourceResult("\n".join(lines) or "there are no skills", structured=_json(skills=listed))

    async def _named(self, name: str) -> SkillEntry:
        """Return a skill; raise `ConfigError` for an unknown one, naming those there are.

        Raises `ToolError` for a skill of a repo whose content changed since the user trusted it.
        """
        found = await self._skills.list()
        check_named(found, (name,))
        skill = next(each for each in found if each.name == name)
        if skill.origin is SkillOrigin.REPO and not await asyncio.to_thread(self._trusted):
            raise ToolError(
                f"skill {quoted(name)} is not used: what the repository brings changed since it was trusted",
                advice="`agent trust` shows what changed",
            )
        return skill

    async def _whole(self, name: str) -> str:
        try:
            return await self._skills.read_file(name, FILE)
        except ConfigError:  # its file is spelled another way
            return await self._skills.body(name)

    async def _run(self, skill: SkillEntry, call: ScriptCall, on_output: OnOutput) -> SourceResult:
        environment = await self._environment(skill, call.script)
        try:
            done = await run_script(self._shell, skill, environment, call, self._bounds, on_output)
        except OSError as error:
            raise ToolError(
                f"the script could not be run: {error}", advice="check the disk and its permissions"
            ) from error
        failed = done.outcome.exit_code != 0
        return SourceResult(done.text, failed, done.outcome.cut_bytes, done.structured)

    async def _environment(self, skill: SkillEntry, script: str) -> SkillEnvironment:
        """Return the environment of a skill; one without packages is made here: nothing is fetched for it.

        Raises `ToolError` for an empty script.
        """
        if not script.strip():
            raise ToolError("the script is empty")
        if await asyncio.to_thread(self._environments.is_plain, Path(skill.folder)):
            await self._setup.make(Requirements())
        return await asyncio.to_thread(self._environments.of, skill)


def _texts(arguments: str) -> Mapping[str, str]:
    value = read_bounded_json(arguments)
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _json(**fields: JsonValue) -> str:
    return json.dumps(fields, ensure_ascii=False)
