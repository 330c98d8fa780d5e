"""Construction of the skills port: the folders that contain skills."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.core.settings import SkillSettings

if TYPE_CHECKING:  # loaded when a session or a check of the plan needs them
    from agent_workbench.adapters.skills.folders import SkillFolders


def skill_folders(root: Path, settings: SkillSettings) -> "SkillFolders":
    """Return the folders of skills of the repo at `root`, of the user and of the package."""
    from agent_workbench.adapters.skills.folders import SkillFolders
    from agent_workbench.core.settings import SHARED_SKILL_FOLDERS
    from agent_workbench.system.user_dirs import config_dir

    shared = (Path.home() / folder for folder in SHARED_SKILL_FOLDERS)
    return SkillFolders(root, settings, (config_dir() / "skills", *shared))
