"""Consistency of hooks, endpoints and role chains after all layers of the settings are merged."""

from collections.abc import Iterator

from agent_workbench.config.layers import Layer, SourcedValue
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.settings.models import SHORT_FORM
from agent_workbench.core.text.amounts import did_you_mean, quoted

GROUP = "endpoints."
ROLES = "roles."

HOOKS = "hooks."
MAX_HOOKS = 20
NEEDED = {
    "command": "command is a line for the shell, which reads the event as JSON on its standard input",
    "events": f"events are some of {', '.join(HookPoint)}",
}


def check_chains(merged: Layer) -> None:
    """Raise `ConfigError` for an endpoint without address and for an unknown name in a chain."""
    names = endpoint_names(merged)
    for name in names:
        _check_endpoint(name, merged)
    for key, said in role_chains(merged):
        for index, name in enumerate(chain_names(said)):
            if name not in names and name != SHORT_FORM:
                place = said.items[index] if said.items else said.location
                where = place if said.origin == "flag" else f"{place}: {key}"
                raise ConfigError(
                    f"{where}: there is no endpoint {quoted(name)}{did_you_mean(name, (*names, SHORT_FORM))}",
                    advice=f"known endpoints: {', '.join((*names, SHORT_FORM))}; define more under endpoints",
                )


def without_unknown_endpoints(merged: Layer) -> Layer:
    """Return the layer without chains that name unknown endpoints."""
    names = {*endpoint_names(merged), SHORT_FORM}
    gone = {key for key, said in role_chains(merged) if not names.issuperset(chain_names(said))}
    return {key: said for key, said in merged.items() if key not in gone}


def endpoint_names(merged: Layer) -> tuple[str, ...]:
    """Return the names of the endpoints, in their order of appearance."""
    return tuple(dict.fromkeys(key.split(".")[1] for key in merged if key.startswith(GROUP)))


def role_chains(merged: Layer) -> Iterator[tuple[str, SourcedValue]]:
    """Yield the key and the setting of every chain."""
    return ((key, said) for key, said in merged.items() if key.startswith(ROLES))


def _check_endpoint(name: str, merged: Layer) -> None:
    above = f"{GROUP}{name}."
    own = {key.removeprefix(above): said for key, said in merged.items() if key.startswith(above)}
    place = next(iter(own.values())).location
    if name == SHORT_FORM:
        raise ConfigError(
            f"{place}: the endpoint name {SHORT_FORM!r} is reserved for the group `{SHORT_FORM}`",
            advice="give the endpoint another name",
        )
    if not any(key in own and own[key].value for key in ("url", "path")):
        raise ConfigError(
            f"{place}: endpoints.{name} is nowhere: expected its url or its path, found neither",
            advice="url is the address of a server, path a GGUF file that the workbench serves",
        )


def chain_names(said: SourcedValue) -> tuple[str, ...]:
    """Return the names in a chain."""
    return said.value if isinstance(said.value, tuple) else ()


def hook_names(layer: Layer) -> tuple[str, ...]:
    """Return the names of the hooks in a layer, in their order."""
    return tuple(dict.fromkeys(key.split(".")[1] for key in layer if key.startswith(HOOKS)))


def hook_entry(layer: Layer, name: str) -> dict[str, SourcedValue]:
    """Return the values of one hook by the last part of their key."""
    above = f"{HOOKS}{name}."
    return {key.removeprefix(above): said for key, said in layer.items() if key.startswith(above)}


def without_hooks(layer: Layer, names: tuple[str, ...]) -> Layer:
    """Return the layer without these hooks: a repository neither replaces nor changes a hook of the user's."""
    gone = tuple(f"{HOOKS}{name}." for name in names)
    return {key: said for key, said in layer.items() if not (gone and key.startswith(gone))}


def check_hooks(merged: Layer) -> None:
    """Raise `ConfigError` for a hook without a command or an event, or for too many hooks."""
    names = hook_names(merged)
    for name in names:
        own = hook_entry(merged, name)
        place = next(iter(own.values())).location
        for key, advice in NEEDED.items():
            if key not in own or not str(own[key].value).strip() or own[key].value == ():
                raise ConfigError(f"{place}: {HOOKS}{name} has no {key}", advice=advice)
    if len(names) > MAX_HOOKS:
        raise ConfigError(f"{len(names)} hooks are set, the limit is {MAX_HOOKS}", advice="remove some")
