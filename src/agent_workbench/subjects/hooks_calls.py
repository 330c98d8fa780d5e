"""Hooks told of what happens to a task outside of a session, such as one of a queue that cannot be read."""

import asyncio

from agent_workbench.bootstrap.repo_context import RepoContext
from agent_workbench.core.errors import WorkbenchError, error_text
from agent_workbench.core.hook_document import bare_document
from agent_workbench.core.settings.extensions import HookPoint


async def tell_hooks(repo: RepoContext, point: HookPoint, task: str, reason: str) -> str:
    """Run the hooks in force at `point`, beside each other and to their ends; return what went wrong, else nothing."""
    try:
        trusted = await asyncio.to_thread(repo.is_trusted)
        settings = await asyncio.to_thread(lambda: repo.settings(trusted=trusted))
        named = [name for name, hook in settings.hooks if point in hook.events]
        if not named:
            return ""
        hooks = await asyncio.to_thread(repo.hooks, settings)
    except WorkbenchError as error:
        return f"no hook was told of {point}: {error_text(error)}"
    documents = [bare_document(point, name, str(repo.root), task, reason) for name in named]
    runs = (hooks.run(name, point, said.text, "") for name, said in zip(named, documents, strict=True))
    ended = zip(named, await asyncio.gather(*runs), strict=True)
    return "; ".join(f"hook {name} failed at {point}: {each.failure}" for name, each in ended if each.failure)
