"""Wiring of the tools of skills, and of the set-up of skills' environments."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:  # loaded when a session, a chat or a set-up needs them
    from agent_workbench.adapters.skill_scripts.environments import SkillEnvironments
    from agent_workbench.adapters.skill_scripts.setup import EnvironmentSetup
    from agent_workbench.adapters.skill_scripts.tool_source import SkillTools
    from agent_workbench.core.ports.skills import Skills
    from agent_workbench.core.ports.workspace import Shell
    from agent_workbench.core.settings import Settings

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
    from agent_workbench.adapters.skill_scripts.script_run import ScriptBounds
    from agent_workbench.adapters.skill_scripts.tool_source import SkillTools

    path = invocation.environ.get("PATH", os.defpath)
    bounds = ScriptBounds(settings.skills.script_seconds, str(root), path, hidden_files(root, settings))
    environments = skill_environments(root)
    return SkillTools(skills, shell, environments, environment_setup(root, invocation, environments), bounds, trusted)


def hidden_files(root: Path, settings: "Settings") -> tuple[str, ...]:
    """Return the paths of a repository that scripts and hooks do not see: its `.env` and its journals."""
    return (str(root / settings.memory.dir / "sessions"), *(str(root / name) for name in _SECRETS))


def skill_environments(root: Path) -> "SkillEnvironments":
    """Return the environments of skills."""
    from agent_workbench.adapters.skill_scripts.environments import SkillEnvironments
    from agent_workbench.system.user_dirs import cache_dir, state_dir

    return SkillEnvironments(root, cache_dir(), state_dir())


def environment_setup(
    root: Path, invocation: Invocation, environments: "SkillEnvironments | None" = None
) -> "EnvironmentSetup":
    """Return what sets environments up."""
    from agent_workbench.adapters.skill_scripts.setup import EnvironmentSetup

    return EnvironmentSetup(environments or skill_environments(root), invocation.environ, root)
