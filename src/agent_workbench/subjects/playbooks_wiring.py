"""Wiring of playbooks: the bundled skill's programs, a shell with network for runs, and vectors for the search."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import command_shell
from agent_workbench.bootstrap.user_extensions import hidden_files, skill_environments
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:  # loaded with a session
    from agent_workbench.adapters.retrieval.retriever import SharedRetriever
    from agent_workbench.core.ports.workspace import Shell
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.playbooks_adapter import AnsiblePlaybooks, AnsiblePrograms


def playbooks(
    root: Path,
    settings: "Settings",
    invocation: Invocation,
    shell: "Shell | None",
    trusted: Callable[[], bool],
    retriever: "SharedRetriever",
) -> "AnsiblePlaybooks":
    """Return the playbooks of the repo at `root`. Blocks.

    Their programs are those of the skill that comes with the package. A skill of that name in a repository changes what
    the model reads, and nothing of what is run with network and keys. Without a `shell` one is made.
    """
    from msgspec.structs import replace

    from agent_workbench.adapters.retrieval.folder_vectors import PLAYBOOKS
    from agent_workbench.subjects.playbooks_adapter import AnsiblePlaybooks, RunBounds

    vectors = retriever.note_vectors(str(root), PLAYBOOKS)
    online = command_shell(root, replace(settings, sandbox=replace(settings.sandbox, network=True)), invocation)
    bounds = RunBounds(str(root), invocation.environ.get("PATH", os.defpath), hidden_files(root, settings))

    async def programs() -> "AnsiblePrograms":
        return await asyncio.to_thread(_programs, root)

    offline = shell or command_shell(root, settings, invocation)
    infrastructure, environ = settings.infrastructure, invocation.environ
    return AnsiblePlaybooks(infrastructure, environ, offline, online, bounds, programs, trusted, vectors)


def _programs(root: Path) -> "AnsiblePrograms":
    """Return the programs of the bundled skill; raise `ToolError` where its environment is missing."""
    from agent_workbench.core.errors import ToolError
    from agent_workbench.core.skills import SkillEntry, SkillOrigin
    from agent_workbench.subjects.playbooks_adapter import SKILL, AnsiblePrograms
    from agent_workbench.subjects.skills.folder_adapter import bundled_skills

    bundled = bundled_skills()
    if bundled is None:
        raise ToolError(f"the bundled skill {SKILL} is not there", advice="install the package as files, not as a zip")
    folder = bundled / SKILL
    environment = skill_environments(root).of(SkillEntry(SKILL, "", SkillOrigin.PACKAGE, str(folder)))
    return AnsiblePrograms(environment.python, environment.folder, folder, environment.bytecode)
