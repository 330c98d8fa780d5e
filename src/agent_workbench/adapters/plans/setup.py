"""The port `Setup`: the files that a repo begins with."""

import asyncio
from pathlib import Path

from agent_workbench.adapters.plans.project_detection import detect
from agent_workbench.adapters.plans.starter_files import init_repo, wanted_files

SETTINGS = ".agent.yml"


class RepoSetup:
    """Sets up the repo at `root`. A repo that has its settings file is set up, whatever else it lacks."""

    def __init__(self, root: Path, path: str) -> None:
        """`path` is the `PATH` on which the programs of the repo's commands are looked for."""
        self._root = root
        self._path = path

    async def missing(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._missing)

    async def write(self) -> tuple[str, ...]:
        return await asyncio.to_thread(lambda: init_repo(self._root, detect(self._root, self._path)))

    def _missing(self) -> tuple[str, ...]:
        if (self._root / SETTINGS).exists():
            return ()
        return tuple(name for name in wanted_files(detect(self._root, self._path)) if not (self._root / name).exists())
