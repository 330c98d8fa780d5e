"""The source `skill` of tools: list skills, read them and their files, and run a script with one."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_workbench.core.errors import ConfigError, ShellError, StorageError, ToolError, error_text
from agent_workbench.core.ports.extensions import Skills
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.ports.workspace import OnOutput, Shell
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
from agent_workbench.subjects.skills.environment_adapter import SkillEnvironment, SkillEnvironments
from agent_workbench.subjects.skills.requirements_adapter import Requirements
from agent_workbench.subjects.skills.script_adapter import ScriptBounds, run_script
from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup

_REFUSALS = (ConfigError, ShellError, StorageError, ToolError)


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
