"""Tools of skills outside of a session, and the set-up of a skill's environment."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.api.trusted_repo import repo_or_folder
from agent_workbench.bootstrap.commands import command_shell
from agent_workbench.bootstrap.repo_context import RepoContext, Say
from agent_workbench.bootstrap.skill_tools import environment_setup, skill_folders, skill_tools
from agent_workbench.core.errors import LockedError, ToolError
from agent_workbench.core.events import SessionLeft
from agent_workbench.core.history.session_choice import SessionQuery
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.core.skills import check_named
from agent_workbench.core.tools.skill_tools import RUN_PYTHON_SCRIPT, SKILL_SPECS
from agent_workbench.core.tools.spec import by_name

if TYPE_CHECKING:  # loaded by the calls that need it
    from agent_workbench.adapters.skill_scripts.setup import EnvironmentSetup, Setup
    from agent_workbench.core.settings import Settings
    from agent_workbench.engine.recorder import Recorder
    from agent_workbench.engine.runtime.session_context import SessionContext

CALLS = "calls over MCP"
"""Label of the sessions that hold such calls."""


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
    from agent_workbench.api.sessions.event_feed import EventFeed
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
