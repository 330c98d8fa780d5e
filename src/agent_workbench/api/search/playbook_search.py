"""Search for a playbook in the user's checkout. Nothing of the repo is run."""

import asyncio

from agent_workbench.api.trusted_repo import trusted_repo
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.playbooks.catalogue import PlaybookSearch


async def search_playbooks(invocation: Invocation, words: str) -> PlaybookSearch:
    """Return the playbook that fits the words, else the nearest ones. Raises `RepoError` without a repository."""
    from agent_workbench.bootstrap.playbooks import playbooks

    repo, settings = await trusted_repo(invocation)
    retriever = await asyncio.to_thread(repo.shared.retriever, settings, invocation.environ)
    found = await asyncio.to_thread(playbooks, repo.root, settings, invocation, None, repo.is_trusted, retriever)
    try:
        return await found.search(await repo.repository.checkout_files(), words)
    finally:
        await found.close()
        await retriever.close()
