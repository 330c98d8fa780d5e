"""This machine: its resources, and the models that run on it or could be served."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when they are needed
    from agent_workbench.adapters.llama_cpp.local_models.file_search import FoundFiles
    from agent_workbench.core.local_models import FoundModels, ServerOptions
    from agent_workbench.core.ports.machine import Machine
    from agent_workbench.core.settings.models import ModelSettings, ServingSettings

NAMED_SECONDS = 10.0
"""Longest time for the answers of a server that the user names: it may be on another machine."""


def local_machine(environ: Mapping[str, str], root: Path) -> "Machine":
    """Return this machine; no program of the repository at `root` is run for it."""
    from agent_workbench.adapters.machine.local_machine import LocalMachine

    return LocalMachine(environ, str(root))


async def find_local_models(environ: Mapping[str, str], root: Path, serving: "ServingSettings") -> "FoundModels":
    """Return the models of this machine, and how the settings `serving` would serve their files.

    Takes about a second, unless the driver of a GPU hangs. Nothing of the repository at `root` is run.
    """
    from agent_workbench.adapters.llama_cpp.local_models.file_search import find_files, usual_folders
    from agent_workbench.adapters.llama_cpp.local_models.server_search import candidates, find_servers
    from agent_workbench.core.local_models import FoundModels
    from agent_workbench.system.user_dirs import data_dir

    def files() -> "FoundFiles":
        machine = local_machine(environ, root)
        if serving.server:
            machine.find_gpus()
        return find_files(usual_folders(environ, data_dir() / "models"), machine.resources(), serving)

    servers, found = await asyncio.gather(find_servers(candidates(environ)), asyncio.to_thread(files))
    return FoundModels(servers, found.files, found.cut)


async def find_server_at(url: str, seconds: float = NAMED_SECONDS) -> "FoundModels":
    """Return the models of the server that the user names; empty if no model server answers there.

    A name and a password in the address are left out. Raises `ConfigError` for what is no address.
    """
    from agent_workbench.adapters.llama_cpp.http_client.endpoint import Endpoint
    from agent_workbench.adapters.llama_cpp.local_models.server_search import ServerCandidate, find_servers
    from agent_workbench.core.local_models import FoundModels

    address = await asyncio.to_thread(lambda: Endpoint(url).address)
    return FoundModels(await find_servers((ServerCandidate("a server", address),), seconds))


def options_of_file(model: "ModelSettings", environ: Mapping[str, str], root: Path) -> "ServerOptions":
    """Return the options with which the file of `model` would be served now. Blocks; raises `ModelUnavailable`."""
    from agent_workbench.adapters.llama_cpp.routing.model_factory import embedded_server

    return embedded_server(model, environ, root, lambda _: None, local_machine(environ, root)).compute_options()
