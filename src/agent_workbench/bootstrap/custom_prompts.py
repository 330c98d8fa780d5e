"""Construction of the port of the user's own prompts."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when a session needs them
    from agent_workbench.adapters.memory.prompt_files import PromptFiles


def custom_prompts(root: Path, memory_dir: str, is_trusted: Callable[[str], bool]) -> "PromptFiles":
    """Return the prompts of the repo at `root`, which count while their folder is trusted, and those of the user."""
    from agent_workbench.adapters.memory.prompt_files import PromptFiles, PromptFolder
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
