"""This machine and what the sessions of a process share on it: servers of models, code searches, and embeddings."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agent_workbench.adapters.database.connection import Database
    from agent_workbench.adapters.database.inbox import DatabaseInbox
    from agent_workbench.adapters.database.shared_store import SharedSessionStore
    from agent_workbench.adapters.git.repository import Repository
    from agent_workbench.adapters.git.working_trees.checkout_files import PastTree
    from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
    from agent_workbench.adapters.llama_cpp.gguf_files import FoundFiles
    from agent_workbench.adapters.llama_cpp.shared_models import SharedModels
    from agent_workbench.adapters.retrieval.evaluation import Evaluation
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever, SharedRetriever, SharedRetrievers
    from agent_workbench.adapters.ssh_signatures import SshSignatures
    from agent_workbench.core.local_models import FoundModels, ServerOptions
    from agent_workbench.core.ports.machine import Machine
    from agent_workbench.core.session_request import Invocation
    from agent_workbench.core.settings import Settings
    from agent_workbench.core.settings.models import ModelSettings, ServingSettings


NAMED_SECONDS = 10.0
"""Longest time for the answers of a server that the user names: it may be on another machine."""

# Longer than the texts that stand for a file; a model that was trained with less takes less.
_CONTEXT_TOKENS = 1_024
_START_SECONDS = 120.0


class SharingRepo(Protocol):
    """Part of a repository's context that shared state is wired with."""

    invocation: "Invocation"
    root: Path
    repository: "Repository"
    shared: "SharedResources"


class SharedResources:
    """Servers and searches that live as long as a session uses them.

    Everything else is the session's own: journal, workspace, ports. Sessions exclude each other by file locks, as those
    of different processes do: a journal has one writer, a task one workspace, plan and notes one change at a time.
    """

    def __init__(self) -> None:
        self._databases: dict[str, Database] = {}
        self._signatures: dict[object, SshSignatures] = {}
        self._sessions: dict[object, SharedSessionStore] = {}
        self._inboxes: dict[object, DatabaseInbox] = {}

    def database(self, address: str) -> "Database":
        """Return the database at an address, the same one each time."""
        from agent_workbench.adapters.database.connection import Database

        return self._databases.setdefault(address, Database(address))

    def signatures(self, key: object, make: "Callable[[], SshSignatures]") -> "SshSignatures":
        """Return the signatures for these settings (`key`), the same each time: they remember what they judged."""
        if key not in self._signatures:
            self._signatures[key] = make()
        return self._signatures[key]

    def sessions(self, key: object, make: "Callable[[], SharedSessionStore]") -> "SharedSessionStore":
        """Return the sessions of all machines for these settings (`key`), the same each time."""
        if key not in self._sessions:
            self._sessions[key] = make()
        return self._sessions[key]

    def inbox(self, key: object, make: "Callable[[], DatabaseInbox]") -> "DatabaseInbox":
        """Return the inbox in a database (`key`), the same each time: it listens with one connection."""
        if key not in self._inboxes:
            self._inboxes[key] = make()
        return self._inboxes[key]

    async def close(self) -> None:
        """End what copies in the background, and close the connections to databases; a later use opens them again."""
        for sessions in self._sessions.values():
            await sessions.close()
        for inbox in self._inboxes.values():
            await inbox.close()
        for database in self._databases.values():
            await database.close()

    @cached_property
    def models(self) -> "SharedModels":
        """Models with an embedded server, one for each model file."""
        from agent_workbench.adapters.llama_cpp.shared_models import SharedModels

        return SharedModels()

    def retriever(self, settings: "Settings", environ: Mapping[str, str]) -> "SharedRetriever":
        """Return the code search for these settings, shared by the sessions that have equal ones."""
        from agent_workbench.system.user_dirs import cache_dir

        cache = cache_dir()
        key = settings.searched, settings.model.server, cache
        return self._retrievers.take(key, lambda: code_retriever(settings, environ, cache))

    @cached_property
    def _retrievers(self) -> "SharedRetrievers":
        from agent_workbench.adapters.retrieval.retriever import SharedRetrievers

        return SharedRetrievers()


def local_machine(environ: Mapping[str, str], root: Path) -> "Machine":
    """Return this machine; no program of the repository at `root` is run for it."""
    from agent_workbench.adapters.local_machine import LocalMachine

    return LocalMachine(environ, str(root))


async def find_local_models(environ: Mapping[str, str], root: Path, serving: "ServingSettings") -> "FoundModels":
    """Return the models of this machine, and how the settings `serving` would serve their files.

    Takes about a second, unless the driver of a GPU hangs. Nothing of the repository at `root` is run.
    """
    from agent_workbench.adapters.llama_cpp.gguf_files import find_files, usual_folders
    from agent_workbench.adapters.llama_cpp.model_servers import candidates, find_servers
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
    from agent_workbench.adapters.llama_cpp.http_endpoint import Endpoint
    from agent_workbench.adapters.llama_cpp.model_servers import ServerCandidate, find_servers
    from agent_workbench.core.local_models import FoundModels

    address = await asyncio.to_thread(lambda: Endpoint(url).address)
    return FoundModels(await find_servers((ServerCandidate("a server", address),), seconds))


def options_of_file(model: "ModelSettings", environ: Mapping[str, str], root: Path) -> "ServerOptions":
    """Return the options with which the file of `model` would be served now. Blocks; raises `ModelUnavailable`."""
    from agent_workbench.adapters.llama_cpp.model_registry import embedded_server

    return embedded_server(model, environ, root, lambda _: None, local_machine(environ, root)).compute_options()


def code_retriever(settings: "Settings", environ: Mapping[str, str], cache: Path | None = None) -> "CodeRetriever":
    """Return the code search that the settings want, with its cache in `cache` (None: the user's cache folder).

    Nothing is started yet. Blocks while modules are loaded.
    """
    from agent_workbench.adapters.retrieval.retriever import CodeRetriever
    from agent_workbench.system.user_dirs import cache_dir

    def server(path: str) -> "EmbeddedServer":
        return _embedding_server(path, settings, environ)

    return CodeRetriever(settings.searched, cache or cache_dir(), environ, server)


async def evaluate_code_search(
    settings: "Settings", environ: Mapping[str, str], cache: Path, past: "PastTree", say: Callable[[str], None]
) -> "Evaluation | None":
    """Measure the code search with a cache of its own; return None if no commit asks a question."""
    from agent_workbench.adapters.retrieval.evaluation import evaluate

    retriever = await asyncio.to_thread(code_retriever, settings, environ, cache)
    try:
        return await evaluate(retriever, past, past.later, settings.searched.exclude, say)
    finally:
        await retriever.close()


def _embedding_server(path: str, settings: "Settings", environ: Mapping[str, str]) -> "EmbeddedServer":
    """Return the llama.cpp server for the embedding model at `path`."""
    from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
    from agent_workbench.adapters.llama_cpp.model_registry import SERVER_VARIABLE
    from agent_workbench.core.settings.models import ServingSettings
    from agent_workbench.system.user_dirs import state_dir

    return EmbeddedServer(
        Path(path),
        log=state_dir() / "logs" / "embeddings.log",
        environ=environ,
        serving=ServingSettings(_CONTEXT_TOKENS, server=settings.model.server or environ.get(SERVER_VARIABLE, "")),
        start_seconds=_START_SECONDS,
        embeddings=True,
    )


def rank_texts(texts: Sequence[str], query: str, limit: int) -> tuple[int, ...]:
    """Return the positions of at most `limit` texts that contain a word of the query, best first. Blocks."""
    from agent_workbench.ranking.small_collections import SmallCollection

    return tuple(each.number for each in SmallCollection(texts).best(query, limit))
