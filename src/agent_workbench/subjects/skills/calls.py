"""Calls about skills: list, show, check and set up, and the tools that their scripts are."""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing, settings_to_check
from agent_workbench.bootstrap.commands import command_shell
from agent_workbench.bootstrap.repo_context import RepoContext, Say, find_repo
from agent_workbench.bootstrap.user_extensions import environment_setup, skill_folders, skill_tools
from agent_workbench.core.errors import LockedError, RepoError, SkillError, ToolError
from agent_workbench.core.events import SessionLeft
from agent_workbench.core.history.summaries import SessionQuery
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.skills import SkillEntry, SkillPlace, check_named
from agent_workbench.core.tools.skill_tools import RUN_PYTHON_SCRIPT, SKILL_SPECS
from agent_workbench.core.tools.spec import by_name

if TYPE_CHECKING:
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.skills import SkillQuery
    from agent_workbench.engine.recorder import Recorder
    from agent_workbench.engine.runtime.session_context import SessionContext
    from agent_workbench.engine.task.skill_choice import SkillChoice
    from agent_workbench.subjects.skills.folder_adapter import SkillFolders
    from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup, Setup


CALLS = "calls over MCP"
"""Label of the sessions that hold such calls."""


class SkillCatalogue(Struct, frozen=True):
    """All skills by name, and the folders that were searched for them, the nearest first."""

    skills: tuple[SkillEntry, ...]
    places: tuple[SkillPlace, ...]


async def list_skills(invocation: Invocation, say: Say = say_nothing) -> SkillCatalogue:
    """Return the skills that a task here may use; tell `say` if the repo's own do not count without trust."""
    return await _catalogue(await _folders(invocation, say))


async def check_skills(invocation: Invocation) -> SkillCatalogue:
    """Return all skills with their problems, those of a repository without trust too: they are only read."""
    try:
        repo = await find_repo(invocation)
    except RepoError:
        return await list_skills(invocation)
    settings = await settings_to_check(repo)
    return await _catalogue(skill_folders(repo.root, settings.skills))


async def show_skill(invocation: Invocation, name: str, say: Say = say_nothing) -> tuple[SkillEntry, str]:
    """Return a skill and its text; raise `SkillError` for an unknown one, or one that cannot be used."""
    folders = await _folders(invocation, say)
    body = await folders.body(name)
    entry = next((each for each in await folders.list() if each.name == name), None)
    if entry is None:
        raise SkillError(
            f"the skill {name!r} was removed meanwhile", advice="`agent skills list` shows those there are"
        )
    return entry, body


async def choose_skills(
    invocation: Invocation, query: "SkillQuery", max_tokens: int | None = None, say: Say = say_nothing
) -> "SkillChoice":
    """Return the skills that fit a query into `max_tokens` (None: `skills.max_tokens`), estimated without a model."""
    from msgspec.structs import replace

    from agent_workbench.engine.task.skill_choice import estimate_tokens, pick_skills

    repo, settings = await repo_or_folder(invocation, say)
    most = settings.skills.max_tokens if max_tokens is None else max_tokens
    catalogue = skill_folders(repo.root, settings.skills)
    return await pick_skills(catalogue, replace(query, max_tokens=most), estimate_tokens)


async def _folders(invocation: Invocation, say: Say) -> "SkillFolders":
    repo, settings = await repo_or_folder(invocation, say)
    return skill_folders(repo.root, settings.skills)


async def _catalogue(folders: "SkillFolders") -> SkillCatalogue:
    return SkillCatalogue(await folders.list(), await folders.places())


async def discipline_prompt(invocation: Invocation, consultant: str) -> tuple[str, str]:
    """Return the repository's root, and the protocols with the discipline of a consultant as its model gets them.

    Raises `UsageError` for an unknown consultant, `SkillError` for a missing discipline.
    """
    from agent_workbench.core.consult_requests import PROTOCOLS, consultant_named
    from agent_workbench.engine.consult_context import RULE

    discipline = consultant_named(consultant).discipline
    root = (await find_repo(invocation)).root
    folders = await _folders(invocation, say_nothing)
    texts = [(await folders.body(name)).strip("\n") for name in (PROTOCOLS, discipline)]
    return str(root), RULE.join(texts)


async def call_skill_tool(invocation: Invocation, tool: str, arguments: str) -> SourceResult:
    """Call a tool of skills with checked arguments (one JSON object) and return its answer.

    Nobody is asked here: a script runs only where `approvals.script` is `auto` and a sandbox confines it. Otherwise
    raises `ToolError`, as for an unknown tool. A script is journaled as a call of a chat is.
    """
    spec = by_name(SKILL_SPECS).get(tool)
    if spec is None:
        raise ToolError(f"unknown tool {tool[:80]!r}", advice=f"there are: {', '.join(by_name(SKILL_SPECS))}")
    repo, settings = await repo_or_folder(invocation)
    if spec.permission is Permission.SCRIPT:
        return await _run_script(repo, settings, arguments)
    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    skills = skill_folders(repo.root, settings.skills)
    source = await asyncio.to_thread(skill_tools, repo.root, settings, invocation, skills, shell, repo.skills_trusted)
    return await source.call(tool, arguments, lambda _: None)


async def _run_script(repo: RepoContext, settings: "Settings", arguments: str) -> SourceResult:
    """Propose a script in the session of such calls, decide about it as in a chat without a person, and run it."""
    from agent_workbench.engine.session.recorded_call import make_recorded_call

    if settings.approvals.script is not Approval.AUTO:
        raise ToolError(
            f"a script needs a person: approvals.script is {settings.approvals.script}",
            advice="start a task or a chat, where its gate shows the script",
        )
    try:
        session, recorder = await _open_calls(repo, SessionQuery(chat=True, label=CALLS))
    except LockedError:  # another call is being made
        session, recorder = await _open_calls(repo, SessionQuery(fresh=True, chat=True, label=CALLS))
    try:
        return await make_recorded_call(session, by_name(SKILL_SPECS)[RUN_PYTHON_SCRIPT], arguments)
    finally:
        try:
            await session.record(SessionLeft("ended"))
        finally:
            await session.close()
            await recorder.close()


async def _open_calls(repo: RepoContext, query: SessionQuery) -> "tuple[SessionContext, Recorder]":
    from agent_workbench.api.sessions.session_handle import EventFeed
    from agent_workbench.api.sessions.session_opening import open_session
    from agent_workbench.engine.runtime.publisher import UpdatePublisher

    trusted, publisher = await asyncio.to_thread(repo.is_trusted), UpdatePublisher(lambda _: None)
    return await open_session(repo, query, publisher, EventFeed(), trusted=trusted, headless=True)


async def plan_setup(invocation: Invocation, name: str, say: Say) -> "tuple[EnvironmentSetup, Setup]":
    """Return what sets up the environment of a skill, and what it would do.

    Raises `ConfigError` for an unknown skill or one with declarations that are not accepted.
    """
    repo, settings = await repo_or_folder(invocation, say)
    found = await skill_folders(repo.root, settings.skills).list()
    check_named(found, (name,))
    skill = next(each for each in found if each.name == name)
    setup = await asyncio.to_thread(environment_setup, repo.root, invocation)
    return setup, await setup.plan(skill)
