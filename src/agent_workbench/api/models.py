"""Calls about the model, and whether everything works."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.api.repo_context import say_nothing, site_or_folder, told_site
from agent_workbench.bootstrap import Say, Site
from agent_workbench.core.invocation import Place

if TYPE_CHECKING:  # engine and adapters are loaded by the calls that need them
    from agent_workbench.adapters.llama_cpp.server.embedded import EmbeddedServer
    from agent_workbench.core.diagnostics.endpoints import EndpointLine
    from agent_workbench.core.diagnostics.findings import Finding
    from agent_workbench.core.errors import ModelError
    from agent_workbench.core.model import ModelFacts
    from agent_workbench.core.ports.services import Model
    from agent_workbench.core.settings import Settings


async def configured_model(place: Place, say: Say) -> "Model":
    """Return the model that the settings ask for; it says what it waits for; close it when done."""
    site, settings = await told_site(place, say)
    return await asyncio.to_thread(site.model, settings, say)


async def answering(place: Place, say: Say) -> "tuple[tuple[str, ModelFacts | ModelError], ...]":
    """Return for each role who answers now, or why nobody does."""
    from agent_workbench.core.diagnostics.endpoints import ROLES
    from agent_workbench.core.errors import ModelError

    model = await configured_model(place, say)
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


async def listed_endpoints(place: Place, say: Say) -> "tuple[EndpointLine, ...]":
    """Return every endpoint of every role in the order in which they are asked; nobody is asked."""
    from agent_workbench.core.diagnostics.endpoints import endpoint_lines

    _, settings = await told_site(place, say)
    return endpoint_lines(settings, place.environ)


async def model_named(place: Place, named: str, say: Say = say_nothing) -> "Model":
    """Return one model: an endpoint by its name, the server at an address, or one that serves a GGUF file.

    It keeps to the prices and the cap of the settings; close it when done. Raises `UsageError` for what is none of
    these.
    """
    from agent_workbench.core.diagnostics.endpoints import settings_for

    site, settings = await told_site(place, say)
    name, meant = await asyncio.to_thread(settings_for, settings, named, _is_file)
    return site.endpoints(meant, say).for_one(name)


def _is_file(path: str) -> bool:
    return Path(path).expanduser().is_file()


async def embedded_server(place: Place, say: Say) -> "EmbeddedServer":
    """Return a server of ours for the model file, not yet started. Raises `UsageError` where no file is named."""
    from agent_workbench.adapters.llama_cpp.routing.model_factory import embedded_server as server_for
    from agent_workbench.core.errors import UsageError

    site, settings = await told_site(place, say)
    if not settings.model.path:
        raise UsageError("no model file is named", advice="say which: `agent model serve FILE`")
    return server_for(settings.model, place.environ, site.model_log, say)


async def examine_place(place: Place) -> "tuple[Finding, ...]":
    """Return what works at `place` and what does not."""
    from agent_workbench.engine.diagnostics.doctor import examine, examine_settings

    site, settings = await site_or_folder(place)
    untrusted = await (await site.trust()).untrusted()
    ports = await asyncio.to_thread(site.ports, settings, say_nothing)
    try:
        loaded = site.load()
        about_settings = examine_settings(loaded.origins, untrusted)
        log = site.endpoints(settings, say_nothing).log
        about_parts = await examine(ports, settings, loaded.settings, str(log))
        return (*about_settings, *about_parts, *await _examine_chains(place, site, settings))
    finally:
        await ports.retriever.close()
        await ports.model.close()


async def _examine_chains(place: Place, site: Site, settings: "Settings") -> "tuple[Finding, ...]":
    """Return what there is to say of endpoints by name; of the one model of everything, all was said."""
    from agent_workbench.core.diagnostics.endpoints import endpoint_lines
    from agent_workbench.core.errors import StorageError
    from agent_workbench.core.model_settings import SHORT_FORM
    from agent_workbench.engine.diagnostics.endpoint_findings import Spending, examine_endpoints, examine_spending

    lines = endpoint_lines(settings, place.environ)
    if {line.name for line in lines} == {SHORT_FORM}:
        return ()
    endpoints = site.endpoints(settings, say_nothing)
    try:
        found = await examine_endpoints(lines, endpoints.looked_at, settings.cost_cap_daily)
    finally:
        await endpoints.close()
    try:
        spending = Spending(await asyncio.to_thread(endpoints.ledger.spent_today), settings.cost_cap_daily)
    except StorageError as error:
        spending = Spending(None, settings.cost_cap_daily, str(error), error.advice)
    return (*found, *examine_spending(lines, spending))
