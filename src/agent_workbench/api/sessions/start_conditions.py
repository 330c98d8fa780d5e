"""Conditions for unattended work: a sandbox or the user's word, and no credentials that an unconfined command reads."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import command_shell, held_credentials
from agent_workbench.core.errors import SandboxError
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.repo.workspace import SandboxFacts

if TYPE_CHECKING:  # adapters are loaded by the calls that need them
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.settings import Settings

UNCONFINED = "install bubblewrap, or say --unconfined to run tests and commands without a sandbox"
MOST_NAMES = 5


def check_confined(sandbox: SandboxFacts, invocation: Invocation, settings: "Settings") -> None:
    """Raise `SandboxError` if no sandbox holds and neither flag nor setting says to go on without one."""
    if not (sandbox.holds or invocation.unconfined or settings.sandbox.unconfined):
        raise SandboxError(f"nobody watches and nothing confines commands here: {sandbox.why}", advice=UNCONFINED)


async def check_run_start(repo: "RepoContext", settings: "Settings") -> None:
    """Raise `SandboxError` where no unattended task may run; `settings` are those with trust."""
    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    check_confined(await shell.observe(), repo.invocation, settings)


async def check_worker_start(repo: "RepoContext", settings: "Settings", jobs: int = 1) -> SandboxFacts:
    """Return the confinement of a worker's commands; `settings` are those with trust.

    Raises `SandboxError` where a worker must not start: without a sandbox and without being told so, or where its
    commands run as its own user while it holds credentials, which they could read in `/proc`. Where they run as another
    user, also for more `jobs` than one at the same time: that user could change the files of each of them.
    """
    shell = await asyncio.to_thread(command_shell, repo.root, settings, repo.invocation)
    sandbox = await shell.observe()
    if settings.sandbox.user and not (sandbox.holds or sandbox.kind == "user"):
        raise SandboxError(f"sandbox.user is {settings.sandbox.user}, but {sandbox.why}", advice=UNCONFINED)
    check_confined(sandbox, repo.invocation, settings)
    held = await asyncio.to_thread(held_credentials, settings, repo.invocation) if sandbox.kind == "none" else ()
    if held:
        more = len(held) - MOST_NAMES
        named = ", ".join(held[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        raise SandboxError(
            f"this worker holds credentials that its unconfined commands could read in /proc: {named}",
            advice="make a sandbox work; or start it as root with AGENT_SANDBOX__USER=NAME, another user for commands; "
            "or start it without them (`agent worker pull` as another user holds the forge's token)",
        )
    if sandbox.kind == "user" and jobs > 1:
        raise SandboxError(
            f"{jobs} tasks at the same time would share the user {settings.sandbox.user}, and their files",
            advice="say --jobs 1, and start a further worker with a user of its own",
        )
    return sandbox
