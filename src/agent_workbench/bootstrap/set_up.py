"""Set-up of a repository: its starter files, the commands of its project, and a model of this machine."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

if TYPE_CHECKING:  # loaded when a set-up is looked at
    from agent_workbench.config.settings_loader import LoadedSettings
    from agent_workbench.core.local_models import FoundModels, ModelChoice
    from agent_workbench.core.ports.workspace import CheckoutSources
    from agent_workbench.core.repo_setup import SetupProposal

MOST_LINKS = 20
"""Most paths that are proposed as `workspace.link` besides the project's environments."""


class LoadSettings(Protocol):
    """Function that returns the settings of the repository."""

    def __call__(self, *, again: bool = False) -> "LoadedSettings":
        """Return them; `again` reads the files anew."""


def named_once(loaded: "LoadedSettings") -> str:
    """Return the address of a server that only a flag names; empty if a settings file names a model."""
    from agent_workbench.config.own_settings import MODELS

    layers = loaded.layers
    in_files = any(key.startswith(MODELS) for layer in (layers.own, layers.repo) for key in layer)
    said = layers.flags.get("model.url")
    return str(said.value) if said is not None and not in_files else ""


class RepoSetup:
    """The port `Setup` for the repo at `root`; one with a settings file counts as set up.

    `load` returns its settings, read `again` after they have changed; `checkout_files` the files of the checkout.
    """

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        load: "LoadSettings",
        checkout_files: "Callable[[], Awaitable[CheckoutSources]]",
    ) -> None:
        self._root = root
        self._environ = environ
        self._load = load
        self._checkout_files = checkout_files

    async def proposal(self, *, whole: bool = False, url: str = "") -> "SetupProposal":
        """Return what is missing, and what was found for it; `whole`: in a repo that is set up, too.

        The server at `url`, or else one that a flag names, is offered in place of what is found.
        """
        from agent_workbench.adapters.plans.starter_files import SETTINGS, missing_files
        from agent_workbench.adapters.project import detect_project
        from agent_workbench.bootstrap.shared_resources import find_server_at
        from agent_workbench.core.repo.absent_sources import unlinked
        from agent_workbench.core.repo_setup import SetupProposal

        missing = await asyncio.to_thread(missing_files, self._root, whole=whole)
        writes_settings = SETTINGS in missing
        path = self._environ.get("PATH", "")
        named = url or await self._flagged_url()
        models = find_server_at(named) if named else self._models()
        if not writes_settings:
            return SetupProposal(missing, models=await models, own_file=self._own_file, named_url=named)
        project = asyncio.to_thread(detect_project, self._root, path)
        detected, found, absent = await asyncio.gather(project, models, self._absent())
        links = (*detected.link, *unlinked(absent, detected.link))
        return SetupProposal(missing, replace(detected, link=links), found, self._own_file, named)

    async def model_proposal(self) -> "SetupProposal":
        """Return the models of this machine, and no files; it needs no repository."""
        from agent_workbench.core.repo_setup import SetupProposal

        return SetupProposal(models=await self._models(), own_file=self._own_file)

    async def _absent(self) -> tuple[str, ...]:
        """Return what workspaces will lack, nothing if it is too much to list: `agent doctor` tells it then."""
        absent = await (await self._checkout_files()).absent_sources()
        return absent if len(absent) <= MOST_LINKS else ()

    async def write(self, proposal: "SetupProposal", choice: "ModelChoice | None") -> tuple[str, ...]:
        """Write the missing files, and the choice of a model into the user's settings; return the paths."""
        return await asyncio.to_thread(self._write, proposal, choice)

    def _write(self, proposal: "SetupProposal", choice: "ModelChoice | None") -> tuple[str, ...]:
        from agent_workbench.adapters.plans.starter_files import init_repo
        from agent_workbench.config.own_settings import add_model
        from agent_workbench.system.user_dirs import config_dir

        added = add_model(config_dir(), choice.settings) if choice is not None else None
        written = init_repo(self._root, proposal.project) if proposal.files else ()
        self._load(again=True)
        return (*written, *([str(added)] if added is not None else []))

    async def _flagged_url(self) -> str:
        """Return the address that a flag names, empty if there is none or a file names a model."""
        loaded = await asyncio.to_thread(self._load)
        return named_once(loaded)

    async def _models(self) -> "FoundModels | None":
        """Return the models of this machine; None if one is configured already."""
        from agent_workbench.bootstrap.shared_resources import find_local_models
        from agent_workbench.config.env_file import SETTING_OF

        loaded = await asyncio.to_thread(self._load)
        model = loaded.settings.model
        of_env_file = any(SETTING_OF.get(name) == "model.url" for name in loaded.env_file.values)
        if model.path or model.url or loaded.settings.endpoints or of_env_file:
            return None
        return await find_local_models(self._environ, self._root, model.serving)

    @property
    def _own_file(self) -> str:
        from agent_workbench.config.own_settings import OWN_FILE
        from agent_workbench.system.user_dirs import config_dir

        path, home = str(config_dir() / OWN_FILE), self._environ.get("HOME", "")
        return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path
