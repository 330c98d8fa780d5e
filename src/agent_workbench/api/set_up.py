"""Set-up of a repository: the missing files, the commands and models that were found, and their writing."""

from typing import TYPE_CHECKING

from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.local_models.found_models import FoundModels, ModelChoice
    from agent_workbench.core.repo_setup import SetupProposal


async def propose_set_up(invocation: Invocation) -> "SetupProposal":
    """Return the missing files, the project's commands, and the models of this machine if none is configured.

    Nothing is written and nothing of the repository is run. Raises `RepoError`, `ConfigError`.
    """
    return await (await find_repo(invocation)).setup.proposal(whole=True)


async def write_set_up(
    invocation: Invocation, proposal: "SetupProposal", choice: "ModelChoice | None"
) -> tuple[str, ...]:
    """Write what was proposed, and the chosen model into the user's settings; return the paths. No file is replaced."""
    return await (await find_repo(invocation)).setup.write(proposal, choice)


async def local_models(invocation: Invocation) -> "FoundModels":
    """Return the servers that answer at the usual ports of this machine, and the files in the usual folders."""
    from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing
    from agent_workbench.bootstrap.machine import find_local_models

    repo, settings = await repo_or_folder(invocation, say_nothing)
    return await find_local_models(repo.invocation.environ, repo.root, settings.model.serving)
