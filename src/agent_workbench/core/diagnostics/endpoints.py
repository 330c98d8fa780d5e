"""Endpoints of each role, as far as the settings alone tell."""

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.consult.attempts import EndpointTier
from agent_workbench.core.errors import UsageError
from agent_workbench.core.model import Purpose
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import SHORT_FORM, EndpointSettings, TokenPrice
from agent_workbench.core.text.amounts import did_you_mean

_HOST = re.compile(r"https?://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^:/?#]*)", re.IGNORECASE)
ROLES = (Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.PLANNER)


class EndpointLine(Struct, frozen=True):
    """One endpoint in one role's chain: its name, its address or file (empty: none), its price.

    `key_variable` is the environment variable of its key (empty: it has none); `key_set`: that variable is set.
    """

    role: str
    name: str
    where: str
    price: TokenPrice = field(default_factory=TokenPrice)
    key_variable: str = ""
    key_set: bool = False


def endpoint_named(settings: Settings, name: str) -> EndpointSettings | None:
    """Return the endpoint that a chain names, None if there is none."""
    if name != SHORT_FORM:
        return dict(settings.endpoints).get(name)
    model = settings.model
    return EndpointSettings(
        url=model.url,
        path=model.path,
        model=model.name,
        server=model.server,
        context_tokens=model.context_tokens,
        threads=model.threads,
        gpu_layers=model.gpu_layers,
        cache_type=model.cache_type,
        api_key_env=model.api_key_env,
    )


def tier_of(settings: Settings, name: str) -> EndpointTier:
    """Return the kind of an endpoint: paid if it has a price, local if this machine serves it, or nothing is set."""
    endpoint = endpoint_named(settings, name) or EndpointSettings()
    if not endpoint.dollars_per_million_tokens.is_free:
        return EndpointTier.PAID
    return (
        EndpointTier.LOCAL if endpoint.path or not endpoint.url or _is_loopback(endpoint.url) else EndpointTier.REMOTE
    )


def tier_of_label(settings: Settings, label: str) -> EndpointTier:
    """Return the kind of the endpoint that signed an answer: `NAME (ADDRESS)`, or an address alone."""
    name = label.partition(" (")[0]
    return tier_of(settings, name if name in dict(settings.endpoints) else SHORT_FORM)


def _is_loopback(url: str) -> bool:
    match = _HOST.match(url)
    host = match[1].lower() if match is not None else ""
    return host in {"localhost", "[::1]"} or host.startswith("127.")


def settings_for(settings: Settings, named: str, is_file: Callable[[str], bool]) -> tuple[str, Settings]:
    """Return the endpoint that a user named on the command line, and settings that define it.

    `named` is an endpoint's name, an address, or a GGUF file. Raises `UsageError` for anything else.
    """
    names = (*dict(settings.endpoints), SHORT_FORM)
    if named in names:
        return named, settings
    if settings.model.url and named.rstrip("/") == settings.model.url.rstrip("/"):
        return SHORT_FORM, settings
    model = replace(settings.model, name="", api_key_env="")
    if named.startswith(("http://", "https://")):
        return SHORT_FORM, replace(settings, model=replace(model, url=named, path=""))
    if is_file(named):
        return SHORT_FORM, replace(settings, model=replace(model, url="", path=named))
    raise UsageError(
        f"{named!r} is not an endpoint, an address or a file{did_you_mean(named, names)}",
        advice=f"endpoints are {', '.join(names)}; an address begins with http:// or https://",
    )


def endpoint_lines(settings: Settings, environ: Mapping[str, str]) -> tuple[EndpointLine, ...]:
    """Return every endpoint of every role, in the order in which they are asked."""
    return tuple(
        _line(role, name, endpoint_named(settings, name) or EndpointSettings(), environ)
        for role, chain in _chains(settings)
        for name in chain
    )


def _chains(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    for purpose in ROLES:
        yield purpose.value, settings.chain(purpose)
    if settings.roles.verifier:
        yield "verifier", settings.roles.verifier
    for skill, chain in settings.roles.skills:
        yield f"skills.{skill}", chain


def _line(role: str, name: str, endpoint: EndpointSettings, environ: Mapping[str, str]) -> EndpointLine:
    return EndpointLine(
        role=role,
        name=name,
        where=endpoint.url or endpoint.path,
        price=endpoint.dollars_per_million_tokens,
        key_variable=endpoint.api_key_env,
        key_set=bool(environ.get(endpoint.api_key_env, "").strip()) if endpoint.api_key_env else False,
    )
