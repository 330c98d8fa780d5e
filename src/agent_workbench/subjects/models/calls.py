"""Models: their status, endpoints, a server of one file, test questions, files of a hub, and the doctor."""

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_workbench.api.trusted_repo import repo_or_folder, say_nothing
from agent_workbench.bootstrap.repo_context import RepoContext, Say
from agent_workbench.bootstrap.set_up import named_once
from agent_workbench.bootstrap.shared_resources import find_local_models, local_machine, options_of_file
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.adapters.llama_cpp.embedded_server import EmbeddedServer
    from agent_workbench.core.diagnostics import EndpointLine, Finding, Fitness, ModelReport
    from agent_workbench.core.errors import ModelError
    from agent_workbench.core.local_models import FoundServer, ListedModel
    from agent_workbench.core.model import ModelFacts
    from agent_workbench.core.ports.model import EndpointModels, Model
    from agent_workbench.core.settings import Settings
    from agent_workbench.subjects.models.folder_adapter import ModelFolder
    from agent_workbench.subjects.models.model_files import StoredModel


Progress = Callable[[str, int, int], None]
"""Told a file, how many bytes of it are there, and how many it has."""


class ModelText(Struct, frozen=True):
    """Answer to a question, the model that gave it, and how long it took."""

    text: str
    model: str
    duration_ms: int


async def configured_model(invocation: Invocation, say: Say) -> "Model":
    """Return the configured model; `say` gets progress messages. The caller closes it."""
    repo, settings = await repo_or_folder(invocation, say)
    return await asyncio.to_thread(repo.model, settings, say)


async def answering(invocation: Invocation, say: Say) -> "tuple[tuple[str, ModelFacts | ModelError], ...]":
    """Return, for each role, the facts of the endpoint that answers now, or the error of the last one."""
    from agent_workbench.core.diagnostics import ROLES
    from agent_workbench.core.errors import ModelError

    model = await configured_model(invocation, say)
    answers: list[tuple[str, ModelFacts | ModelError]] = []
    try:
        for role in ROLES:
            try:
                answers.append((role.value, await model.observe(role)))
            except ModelError as error:
                answers.append((role.value, error))
    finally:
        await model.close()
    return tuple(answers)


async def serving_reasons(invocation: Invocation, say: Say) -> tuple[str, ...]:
    """Return how the file of `model` would be served now, each choice with its reason; empty if none is set.

    A server that runs already takes its memory: this is asked before one is started. Raises `ModelUnavailable`.
    """
    repo, settings = await repo_or_folder(invocation, say)
    if not settings.model.path:
        return ()
    return (await asyncio.to_thread(options_of_file, settings.model, repo.invocation.environ, repo.root)).reasons


async def listed_endpoints(invocation: Invocation, say: Say) -> "tuple[EndpointLine, ...]":
    """Return every endpoint of every role in the order of its chain. No request is sent."""
    from agent_workbench.core.diagnostics import endpoint_lines

    repo, settings = await repo_or_folder(invocation, say)
    return endpoint_lines(settings, repo.invocation.environ)


async def served_models(invocation: Invocation, say: Say) -> "tuple[FoundServer, ...]":
    """Return the servers of the endpoints in the settings with their models, or why one lists none. Loads nothing."""
    async with _endpoint_models(invocation, say) as endpoints:
        return await endpoints.servers()


async def load_model(invocation: Invocation, model: str, say: Say) -> "ListedModel":
    """Load a model at the first server that lists it, and return it; raise `UsageError`, `ModelError`."""
    async with _endpoint_models(invocation, say) as endpoints:
        return await endpoints.load(_server_of(await endpoints.servers(), model), model)


async def unload_model(invocation: Invocation, model: str, say: Say) -> None:
    """Unload a model at the first server that lists it; raise `UsageError`, `ModelError`."""
    async with _endpoint_models(invocation, say) as endpoints:
        await endpoints.unload(_server_of(await endpoints.servers(), model), model)


@asynccontextmanager
async def _endpoint_models(invocation: Invocation, say: Say) -> "AsyncIterator[EndpointModels]":
    repo, settings = await repo_or_folder(invocation, say)
    endpoints = repo.endpoint_models(settings, say)
    try:
        yield endpoints
    finally:
        await endpoints.close()


def _server_of(servers: "Sequence[FoundServer]", model: str) -> str:
    """Return the endpoint of the first server that lists a model; one that loads models on request comes first."""
    from agent_workbench.core.errors import UsageError
    from agent_workbench.core.text.sanitizer import sanitize_line

    able = [each for each in servers if each.model(model) is not None]
    if not able:
        reasons = "; ".join(each.problem for each in servers if each.problem)
        raise UsageError(
            f"no server of the settings lists a model {sanitize_line(model, 120)!r}"
            + (f": {reasons}" if reasons else ""),
            advice="`agent model served` shows what they list; --model-url names another server",
        )
    return next((each for each in able if each.manages), able[0]).endpoint


async def model_named(invocation: Invocation, named: str, say: Say = say_nothing) -> "Model":
    """Return one model: an endpoint by its name, the server at an address, or one that serves a GGUF file.

    It keeps to the prices and the cap of the settings; close it when done. Raises `UsageError` for what is none of
    these.
    """
    from agent_workbench.core.diagnostics import settings_for

    repo, settings = await repo_or_folder(invocation, say)
    name, meant = await asyncio.to_thread(settings_for, settings, named, _is_file)
    return repo.endpoints(meant, say).for_one(name)


def _is_file(path: str) -> bool:
    return Path(path).expanduser().is_file()


async def embedded_server(invocation: Invocation, say: Say) -> "EmbeddedServer":
    """Return an embedded server for the model file, not started. Raises `UsageError` if no file is named."""
    from agent_workbench.adapters.llama_cpp.model_registry import embedded_server as server_for
    from agent_workbench.core.errors import UsageError

    repo, settings = await repo_or_folder(invocation, say)
    if not settings.model.path:
        raise UsageError("no model file is named", advice="say which: `agent model serve FILE`")
    environ = repo.invocation.environ
    return server_for(settings.model, environ, repo.model_log, say, local_machine(environ, repo.root))


async def examine_place(invocation: Invocation, say: Say = say_nothing) -> "tuple[Finding, ...]":
    """Return the findings of the doctor; `say` is told what takes time, such as a server that loads its model."""
    from agent_workbench.engine.doctor import examine, examine_settings

    repo, settings = await repo_or_folder(invocation)
    untrusted = await (await repo.trust()).untrusted()
    ports = await asyncio.to_thread(repo.ports, settings, say)
    try:
        loaded = repo.load()
        used = repo.in_force(trusted=not untrusted)
        about_settings = examine_settings(used.origins, used.unused, untrusted, loaded.left_out)
        log = repo.endpoints(settings, say_nothing).log
        # Before a server of ours takes its memory.
        about_models = await _examine_local_models(repo, settings)
        about_parts = await examine(ports, settings, loaded.settings, str(log))
        return (*about_settings, *about_parts, *about_models, *await _examine_chains(repo, settings, say))
    finally:
        await ports.retriever.close()
        await ports.model.close()


async def _examine_local_models(repo: RepoContext, settings: "Settings") -> "tuple[Finding, ...]":
    """Return how the file of `model` would be served; without any model, those of this machine."""
    from agent_workbench.core.diagnostics import Finding, Health
    from agent_workbench.core.errors import ModelError

    model, environ = settings.model, repo.invocation.environ
    if url := named_once(repo.load()):
        advice = f"`agent init --url {shlex.quote(url)}` keeps it for all your repos"
        return (Finding("model url", Health.GOOD, f"{url} is named by a flag, for this once", advice),)
    if model.path:
        try:
            options = await asyncio.to_thread(options_of_file, model, environ, repo.root)
        except ModelError:  # the finding about the model says so
            return ()
        health = Health.GOOD if options.fits else Health.WARNING
        return tuple(Finding("model server", health, reason) for reason in options.reasons)
    if model.url or settings.endpoints:
        return ()
    choices = (await find_local_models(environ, repo.root, model.serving)).choices
    advice = "`agent init` uses one of them"
    return tuple(Finding("found", Health.GOOD, each.label, advice if each is choices[-1] else "") for each in choices)


async def _examine_chains(repo: RepoContext, settings: "Settings", say: Say) -> "tuple[Finding, ...]":
    """Return findings about named endpoints; a single model is covered by the other findings."""
    from agent_workbench.core.diagnostics import endpoint_lines
    from agent_workbench.core.errors import StorageError
    from agent_workbench.core.settings.models import SHORT_FORM
    from agent_workbench.engine.endpoint_findings import Spending, examine_endpoints, examine_spending

    lines = endpoint_lines(settings, repo.invocation.environ)
    if {line.name for line in lines} == {SHORT_FORM}:
        return ()
    endpoints = repo.endpoints(settings, say)
    try:
        found = await examine_endpoints(lines, endpoints.looked_at, settings.cost_cap_daily)
    finally:
        await endpoints.close()
    try:
        spending = Spending(await endpoints.spending.spent_today(), settings.cost_cap_daily)
    except StorageError as error:
        spending = Spending(None, settings.cost_cap_daily, str(error), error.advice)
    return (*found, *examine_spending(lines, spending))


async def ask_model(invocation: Invocation, prompt: str, named: str = "", say: Say = say_nothing) -> ModelText:
    """Ask the endpoint or model `named` in the settings (empty: the chain of the consultants) and return its answer.

    An address or a file is no name: who asks may be another program. Raises `UsageError`, `ModelError`.
    """
    from agent_workbench.core.model import Message, ModelRequest, Purpose, Role
    from agent_workbench.engine.consult_attempts import ask_once, endpoint_called

    repo, settings = await repo_or_folder(invocation, say)
    purpose = Purpose.EXECUTOR if named else Purpose.CONSULTANT
    if named:
        model = repo.endpoints(settings, say).for_one(endpoint_called(settings, named))
    else:
        model = await asyncio.to_thread(repo.model, settings, say)
    request = ModelRequest(
        messages=(Message(Role.USER, prompt),),
        purpose=purpose,
        answer_tokens=settings.model.answer_tokens,
        answer_seconds=settings.model.answer_seconds,
        subject="question",
    )
    begun = time.monotonic()
    try:
        text, who = await ask_once(model, request)
    finally:
        await model.close()
    return ModelText(text, who, round((time.monotonic() - begun) * 1_000))


async def run_model_test(
    invocation: Invocation, named: str, say: Say, seconds: float
) -> "tuple[ModelReport, tuple[Fitness, ...]]":
    """Ask the model `named` (empty: the executor's) ten questions; return the report and the verdict for each role.

    Raises `UsageError` for an unknown name, `ModelError` if no endpoint answers.
    """
    from agent_workbench.bootstrap.stores import system_clock
    from agent_workbench.engine.endpoint_findings import fitness
    from agent_workbench.engine.model_trial import try_model

    model = await (model_named(invocation, named, say) if named else configured_model(invocation, say))
    try:
        report = await try_model(model, system_clock(), say, seconds)
    finally:
        await model.close()
    return report, fitness(report)


class PulledModel(Struct, frozen=True):
    """A model that was pulled: the path for `model.path`, the commit it is from, its files and bytes."""

    path: Path
    commit: str
    files: int
    size: int


def model_folder() -> "ModelFolder":
    """Return the user's folder of models."""
    from agent_workbench.subjects.models.folder_adapter import ModelFolder
    from agent_workbench.system.user_dirs import data_dir

    return ModelFolder(data_dir() / "models")


def pull_model(named: str, progress: Progress) -> PulledModel:
    """Bring a model (`OWNER/NAME[:QUANT]`) into the folder of models, each file proved by its checksum.

    The commit is chosen once, and all files are of it. Raises `UsageError` for a name that there is none of,
    `StorageError` without the room, `ModelError` if the hub does not answer or what came is wrong.
    """
    from agent_workbench.subjects.models.hub_adapter import (
        check_room,
        download,
        find_revision,
        have,
        partial_of,
        target_of,
    )
    from agent_workbench.subjects.models.model_files import read_hub_name, wanted_files

    name = read_hub_name(named)
    revision = find_revision(name)
    files = wanted_files(revision)
    folder = model_folder()
    place = folder.of(name)
    missing = [each for each in files if not target_of(place, each).is_file()]
    check_room(place, sum(each.size - have(partial_of(place, each)) for each in missing))
    paths = []
    for file in files:
        there = 0

        def more(count: int, path: str = file.path, size: int = file.size) -> None:
            nonlocal there
            there += count
            progress(path, min(there, size), size)

        paths.append(download(revision, file, place, more))
    folder.keep(revision, files)
    return PulledModel(paths[0], revision.commit, len(files), sum(each.size for each in files))


def stored_models() -> "tuple[StoredModel, ...]":
    """Return the models in the folder of models."""
    return model_folder().stored()


def remove_model(named: str) -> int:
    """Remove a model and return the freed bytes; raise `UsageError` if it is not there."""
    from agent_workbench.subjects.models.model_files import read_hub_name

    return model_folder().remove(read_hub_name(named))
