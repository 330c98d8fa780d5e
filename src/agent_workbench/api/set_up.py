"""Set-up of a repository, or of the demo's: the missing files, what was found, and their writing."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.errors import RepoError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.local_models import FoundModels, ModelChoice
    from agent_workbench.core.repo_setup import SetupProposal


async def propose_set_up(invocation: Invocation, url: str = "") -> "SetupProposal":
    """Return the missing files, the project's commands, and the models of this machine if none is configured.

    With `url` the models are those of the server there. Nothing is written and nothing of the repository is run. Raises
    `RepoError`, `ConfigError`.
    """
    return await (await find_repo(invocation)).setup.proposal(whole=True, url=url)


async def propose_model(invocation: Invocation) -> "SetupProposal":
    """Return the models of this machine if none is configured, in a repository or outside of one."""
    from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing

    repo, _ = await repo_or_folder(invocation, say_nothing)
    return await repo.setup.model_proposal()


async def write_model(invocation: Invocation, proposal: "SetupProposal", choice: "ModelChoice") -> str:
    """Write the chosen model into the user's settings; return the path. Raises `ConfigError`, `StorageError`."""
    from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing

    repo, _ = await repo_or_folder(invocation, say_nothing)
    await repo.setup.write(proposal, choice)
    return proposal.own_file


async def write_set_up(
    invocation: Invocation, proposal: "SetupProposal", choice: "ModelChoice | None"
) -> tuple[str, ...]:
    """Write what was proposed, and the chosen model into the user's settings; return the paths. No file is replaced."""
    return await (await find_repo(invocation)).setup.write(proposal, choice)


async def new_to_git(invocation: Invocation) -> tuple[str, ...]:
    """Return the settings file and the folder `memory/` as far as git shows them as new and tracks nothing of them."""
    from agent_workbench.adapters.plans.starter_files import OWN

    repo = (await find_repo(invocation)).repository
    try:
        untracked, tracked = (await repo.inspect()).untracked_paths, await repo.list_tracked()
    except RepoError:  # there is no commit yet
        return ()
    return tuple(each for each in OWN if _has(untracked, each) and not _has(tracked, each))


def _has(paths: Sequence[str], beginning: str) -> bool:
    return any(path.startswith(beginning) for path in paths)


async def keep_private(invocation: Invocation, names: Sequence[str]) -> None:
    """Name these files in `.git/info/exclude`, which is in no commit; raise `StorageError`."""
    from agent_workbench.adapters.plans.starter_files import exclude

    facts = await (await find_repo(invocation)).repository.inspect()
    await asyncio.to_thread(exclude, Path(facts.common_dir), names)


async def local_models(invocation: Invocation) -> "FoundModels":
    """Return the servers that answer at the usual ports of this machine, and the files in the usual folders."""
    from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing
    from agent_workbench.bootstrap.shared_resources import find_local_models

    repo, settings = await repo_or_folder(invocation, say_nothing)
    return await find_local_models(repo.invocation.environ, repo.root, settings.model.serving)


async def write_demo(folder: Path, invocation: Invocation) -> Invocation:
    """Write the demo's repository, trust its settings, and return the invocation that opens it."""

    def write() -> None:
        from agent_workbench.adapters.demo import write_sample
        from agent_workbench.system.atomic_files import storage_error

        try:
            write_sample(folder)
        except OSError as error:
            raise storage_error(f"the demo cannot be written to {error.filename or folder}", error) from error

    await asyncio.to_thread(write)
    demo = replace(invocation, folder=folder, demo=True)
    trust = await (await find_repo(demo)).trust()
    if await trust.question():
        await trust.accept()
    return demo
