"""Connection of one repository to its forge, by the adapter that the settings name, and comments of proposals."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent_workbench.api.trusted_repo import redactor_of
from agent_workbench.core.approval_rules import local_person_reason
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.fold import fold_all
from agent_workbench.subjects.forge.issues import issue_of
from agent_workbench.subjects.forge.view import ProposalComment, proposal_comment

if TYPE_CHECKING:
    from agent_workbench.bootstrap.repo_context import RepoContext
    from agent_workbench.core.ids import SessionId
    from agent_workbench.core.inbox import InboxItem
    from agent_workbench.core.plan import Task
    from agent_workbench.core.ports.forge import Forge, ForgeComment, ForgeRemote
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.settings.worker import ForgeSettings
    from agent_workbench.core.state.session_state import SessionState
    from agent_workbench.system.locks import FileLock


WAIT_SECONDS = 60.0

MOST_SHOWN = 5
"""Comments about one proposal: it is shown again if somebody changed the comment."""


class ForgeLink:
    """The forge of a repository, and the sessions that are reported to it."""

    def __init__(self, repo: "RepoContext", settings: "Settings") -> None:
        """Raise `ConfigError` if the token is missing; no request is sent."""
        self.repo = repo
        self.all_settings = settings
        self.settings = settings.forge
        self.forge, self.remote = repo_forge(repo, settings.forge)
        self._redactor = redactor_of(repo.invocation, settings)
        self._turn = asyncio.Lock()

    @property
    def host(self) -> str:
        """Host of the forge, as it stands in decisions."""
        return urlsplit(self.settings.url).netloc

    def issue_of(self, task: "Task") -> int | None:
        """Return the number of the task's issue in this repository, None if it has none here."""
        return issue_of(task, self.settings.repo, self.settings.software)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Wait until nobody else talks to the forge for this repository; raise `LockedError`, `StorageError`.

        Two who look for their comment at once would both write it.
        """
        async with self._turn:
            lock = await asyncio.to_thread(forge_lock, self.repo)
            await asyncio.to_thread(lambda: lock.acquire(wait_seconds=WAIT_SECONDS))
            try:
                yield
            finally:
                await asyncio.to_thread(lock.release)

    async def comment(self, issue: int, key: str, text: str) -> None:
        """Write or replace the comment with this key, without secrets of the environment; raise `ForgeError`."""
        await self.forge.comment(issue, key, self.redact(text))

    def redact(self, text: str) -> str:
        """Return the text as it may leave this machine."""
        return self._redactor.redact(text)

    async def state(self, session: "SessionId") -> "SessionState":
        """Return the state of a session; raise `JournalError`, `UsageError`."""
        sessions = await asyncio.to_thread(self.repo.sessions, self.all_settings)
        return await asyncio.to_thread(fold_all, await sessions.read(session))

    async def close(self) -> None:
        """Close all connections."""
        await self.forge.close()


def needs_local_person(state: "SessionState", settings: "Settings") -> str:
    """Return why the waiting proposal is decided on this machine alone, empty if the forge may decide it."""
    run, proposal = state.run, state.waiting
    if run is None or proposal is None:
        return "it belongs to no task"
    configured = tuple(filter(None, (settings.test_command, settings.lint_command)))
    return local_person_reason(proposal, run.definition, configured)


def proposal_key(item: "InboxItem") -> str:
    """Return the key of the comment that shows a proposal as it is now."""
    return f"proposal:{item.reference or item.id}"


def comments_about(comments: "Sequence[ForgeComment]", key: str) -> "list[ForgeComment]":
    """Return the agent's own comments about a proposal, the repeated ones included."""
    return [each for each in comments if each.own and (each.key == key or each.key.startswith(f"{key}:"))]


def as_written(comments: "Sequence[ForgeComment]", key: str, text: str) -> "list[ForgeComment]":
    """Return those of them that nobody changed: who reads one of these sees what is decided."""
    return [each for each in comments_about(comments, key) if not each.edited and each.text == text.strip()]


def shown_proposal(link: "ForgeLink", item: "InboxItem", state: "SessionState") -> ProposalComment:
    """Return the comment about a proposal as it stands on the forge.

    Where a secret of the environment had to be left out, the comment does not show everything and nothing is decided.
    """
    comment = proposal_comment(item, state, needs_local_person(state, link.all_settings))
    if link.redact(comment.text) != comment.text:
        comment = proposal_comment(item, state, "it contains a secret of the worker's environment")
    return comment


async def show_proposal(
    link: "ForgeLink", issue: int, item: "InboxItem", state: "SessionState", comments: "Sequence[ForgeComment]"
) -> None:
    """Write a comment about a proposal, unless one of `comments` shows it; raise `ForgeError`.

    A comment that somebody changed is not written over: what was decided below it counts for nothing.
    """
    key, text = proposal_key(item), link.redact(shown_proposal(link, item, state).text)
    about = comments_about(comments, key)
    if not as_written(comments, key, text) and len(about) < MOST_SHOWN:
        await link.comment(issue, f"{key}:{len(about)}" if about else key, text)


def repo_forge(repo: "RepoContext", settings: "ForgeSettings") -> "tuple[Forge, ForgeRemote]":
    """Return the forge and its git repository; raise `ConfigError` if the token is missing. No request is sent."""
    from agent_workbench.adapters.git.remote_transport import ForgePush
    from agent_workbench.core.settings.worker import ForgeKind
    from agent_workbench.subjects.forge.gitea_adapter import GiteaForge
    from agent_workbench.subjects.forge.github_adapter import GithubForge

    name = settings.token_variable
    token = repo.invocation.environ.get(name, "").strip()
    if not token:
        raise ConfigError(
            f"the forge's token is missing: the variable {name} is empty",
            advice="put the token into it, or name another variable in forge.token_env",
        )
    address = f"{settings.url.rstrip('/')}/{settings.repo}.git"
    forge = GithubForge if settings.software is ForgeKind.GITHUB else GiteaForge
    return forge.at(settings, token), ForgePush(repo.root, address, token)


def forge_lock(repo: "RepoContext") -> "FileLock":
    """Return the lock of whoever talks to the forge for this repository: one at a time. Blocks."""
    from agent_workbench.system.atomic_files import make_directories
    from agent_workbench.system.locks import FileLock, describe_holder
    from agent_workbench.system.user_dirs import repo_key, state_dir

    folder = state_dir() / "forge"
    make_directories(folder)
    return FileLock(folder / f"{repo_key(str(repo.root))}.lock", describe_holder())
