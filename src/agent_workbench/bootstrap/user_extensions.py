"""Wiring of what the user adds: skills with their tools and environments, prompts, and MCP servers."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.bootstrap.commands import KEYS, signing_keys
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import SkillSettings

if TYPE_CHECKING:
    from agent_workbench.adapters.memory import PromptFiles
    from agent_workbench.core.ports.extensions import Skills
    from agent_workbench.core.ports.workspace import Shell
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer
    from agent_workbench.subjects.skills.environment_adapter import SkillEnvironments
    from agent_workbench.subjects.skills.folder_adapter import SkillFolders
    from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup
    from agent_workbench.subjects.skills.tools_adapter import SkillTools


_SECRETS = (".env", ".env.local")


def skill_tools(
    root: Path,
    settings: "Settings",
    invocation: Invocation,
    skills: "Skills",
    shell: "Shell",
    trusted: Callable[[], bool],
) -> "SkillTools":
    """Return the source of the tools of skills. Its scripts see neither the repo's `.env` nor its journals.

    `trusted` tells at each call whether the repo is as the user trusted it.
    """
    from agent_workbench.subjects.skills.tools_adapter import ScriptBounds, SkillTools

    path = invocation.environ.get("PATH", os.defpath)
    bounds = ScriptBounds(settings.skills.script_seconds, str(root), path, hidden_files(root, settings))
    environments = skill_environments(root)
    return SkillTools(skills, shell, environments, environment_setup(root, invocation, environments), bounds, trusted)


def hidden_files(root: Path, settings: "Settings") -> tuple[str, ...]:
    """Return the paths of a repository that scripts and hooks do not see: its `.env` and its journals."""
    return (str(root / settings.memory.dir / "sessions"), *(str(root / name) for name in _SECRETS))


def skill_environments(root: Path) -> "SkillEnvironments":
    """Return the environments of skills."""
    from agent_workbench.subjects.skills.environment_adapter import SkillEnvironments
    from agent_workbench.system.user_dirs import cache_dir, state_dir

    return SkillEnvironments(root, cache_dir(), state_dir())


def environment_setup(
    root: Path, invocation: Invocation, environments: "SkillEnvironments | None" = None
) -> "EnvironmentSetup":
    """Return what sets environments up."""
    from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup

    return EnvironmentSetup(environments or skill_environments(root), invocation.environ, root)


def skill_folders(root: Path, settings: SkillSettings) -> "SkillFolders":
    """Return the folders of skills of the repo at `root`, of the user and of the package."""
    from agent_workbench.core.settings import SHARED_SKILL_FOLDERS
    from agent_workbench.subjects.skills.folder_adapter import SkillFolders
    from agent_workbench.system.user_dirs import config_dir

    shared = (Path.home() / folder for folder in SHARED_SKILL_FOLDERS)
    return SkillFolders(root, settings, (config_dir() / "skills", *shared))


def custom_prompts(root: Path, memory_dir: str, is_trusted: Callable[[str], bool]) -> "PromptFiles":
    """Return the prompts of the repo at `root`, which count while their folder is trusted, and those of the user."""
    from agent_workbench.adapters.memory import PromptFiles, PromptFolder
    from agent_workbench.core.custom_prompts import FOLDER, prompt_folder
    from agent_workbench.system.user_dirs import config_dir

    of_repo, of_user = prompt_folder(memory_dir), config_dir() / FOLDER
    # A user's own files may be links to anywhere, as those of dotfiles are.
    anywhere = Path(of_user.anchor)
    return PromptFiles(
        PromptFolder(root, of_repo, of_repo),
        PromptFolder(anywhere, str(of_user.relative_to(anywhere)), str(of_user)),
        lambda: is_trusted(of_repo),
    )


def tool_servers(settings: "Settings", root: Path, environ: Mapping[str, str]) -> "tuple[McpServer, ...]":
    """Return a source of tools for each MCP server; none is started yet. Blocks while modules are loaded."""
    if not settings.mcp_servers:
        return ()
    from agent_workbench.adapters.shell.server_processes import SandboxedServers
    from agent_workbench.core.extras import needed_subject
    from agent_workbench.system.user_dirs import cache_dir, config_dir, state_dir

    with needed_subject():
        from agent_workbench.subjects.mcp_client.server_tools_adapter import McpServer
    own = tuple(str(each) for each in (state_dir(), config_dir(), cache_dir()))
    servers = SandboxedServers(str(root), environ, own, signing_keys(settings))
    sign_ins = str(state_dir() / KEYS / "mcp")
    return tuple(McpServer(name, entry, servers, environ, sign_ins) for name, entry in settings.mcp_servers)
