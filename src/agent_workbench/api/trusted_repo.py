"""The repository around an invocation with the settings that the user trusts, and the check for a person."""

import asyncio
from typing import TYPE_CHECKING

from agent_workbench.bootstrap import stores
from agent_workbench.bootstrap.repo_context import RepoContext, Say, find_repo, git_repository
from agent_workbench.core.errors import RepoError, TrustError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # adapters are loaded by the calls that need them
    from agent_workbench.adapters.journal.redaction import Redactor
    from agent_workbench.bootstrap.shared_resources import SharedResources
    from agent_workbench.config.trust_store import RepoTrust
    from agent_workbench.core.settings import Settings

UNTRUSTED = "what the settings of this repo would run or ask is not trusted and does not count; `agent trust` shows it"
_DATABASE = "database.url_env"
TRUST_FIRST = "`agent trust` shows what it would run and asks; `agent trust --yes` says yes"


async def repo_trust(invocation: Invocation) -> "RepoTrust":
    """Return what the repository's settings would run, and the user's trust in it."""
    return await (await find_repo(invocation)).trust()


async def trusted_repo(
    invocation: Invocation, shared: "SharedResources | None" = None
) -> "tuple[RepoContext, Settings]":
    """Return the repository and the settings that count in it; raise `RepoError` if there is none."""
    repo = await find_repo(invocation, shared)
    trust = await repo.trust()
    trusted = await asyncio.to_thread(trust.is_trusted)
    return repo, await asyncio.to_thread(lambda: repo.settings(trusted=trusted))


async def settings_to_check(repo: RepoContext) -> "Settings":
    """Return the settings to check files of the repo with: all of its `.agent.yml`, and its `.env` only with trust."""
    trust = await repo.trust()
    trusted = await asyncio.to_thread(trust.is_trusted)
    return await asyncio.to_thread(lambda: repo.settings(trusted=True) if trusted else repo.load().settings)


async def require_trust(repo: RepoContext) -> None:
    """Raise `TrustError` if the user has not trusted what the repository would run: nobody can be asked now."""
    if await (await repo.trust()).question():
        raise TrustError(f"what {repo.root} would run is not trusted", advice=TRUST_FIRST)


async def check_person() -> None:
    """Raise `TrustError` in a command of the agent, unless the state folder is its own: it may record nothing there."""
    await asyncio.to_thread(stores.check_person)


async def database_advice(repo: RepoContext, advice: str) -> str:
    """Return what to do where no database is in force: to trust the one that the repo names, if it names one."""
    if _DATABASE in await (await repo.trust()).untrusted():
        return f"{_DATABASE} of .agent.yml is not trusted, so it does not count: {TRUST_FIRST}"
    return advice


async def repo_or_folder(invocation: Invocation, say: Say | None = None) -> "tuple[RepoContext, Settings]":
    """Return what `trusted_repo` does, or the folder alone if it is in no repository; nothing in it is obeyed.

    Tells `say` if some of the repo's settings do not count because they are not trusted.
    """
    try:
        repo, settings = await trusted_repo(invocation)
    except RepoError:
        repository = await asyncio.to_thread(git_repository, invocation)
        repo = RepoContext(invocation, repository, invocation.folder)
        return repo, await asyncio.to_thread(lambda: repo.settings(trusted=False))
    if say is not None and await (await repo.trust()).question():
        say(UNTRUSTED)
    return repo, settings


def redactor_of(invocation: Invocation, settings: "Settings") -> "Redactor":
    """Return what replaces the secrets of the environment in texts."""
    from agent_workbench.adapters.journal.redaction import environment_redactor

    return environment_redactor(invocation.environ, settings.key_variables)


def say_nothing(_: str) -> None:
    """Ignore a status message."""
