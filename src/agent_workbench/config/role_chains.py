"""What endpoints and the chains of roles have to hold together, whoever said which part of them."""

from collections.abc import Iterator

from agent_workbench.config.layers import Layer, Setting
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.model_settings import SHORT_FORM
from agent_workbench.core.text.messages import did_you_mean, quoted

GROUP = "endpoints."
ROLES = "roles."


def check_chains(merged: Layer) -> None:
    """Raise `ConfigError` for an endpoint that is nowhere, and for a name in a chain that no endpoint has."""
    names = endpoint_names(merged)
    for name in names:
        _check_endpoint(name, merged)
    for key, said in chains(merged):
        for index, name in enumerate(names_of(said)):
            if name not in names and name != SHORT_FORM:
                place = said.items[index] if said.items else said.said_at
                where = place if said.origin == "flag" else f"{place}: {key}"
                raise ConfigError(
                    f"{where}: there is no endpoint {quoted(name)}{did_you_mean(name, (*names, SHORT_FORM))}",
                    advice=f"endpoints are {', '.join((*names, SHORT_FORM))}; more are named under endpoints",
                )


def without_unknown(merged: Layer) -> Layer:
    """Return the layer without the chains that name endpoints which it does not hold."""
    names = {*endpoint_names(merged), SHORT_FORM}
    gone = {key for key, said in chains(merged) if not names.issuperset(names_of(said))}
    return {key: said for key, said in merged.items() if key not in gone}


def endpoint_names(merged: Layer) -> tuple[str, ...]:
    """Return the names of the endpoints, in the order in which they were said."""
    return tuple(dict.fromkeys(key.split(".")[1] for key in merged if key.startswith(GROUP)))


def chains(merged: Layer) -> Iterator[tuple[str, Setting]]:
    """Yield the key and the setting of every chain."""
    return ((key, said) for key, said in merged.items() if key.startswith(ROLES))


def _check_endpoint(name: str, merged: Layer) -> None:
    above = f"{GROUP}{name}."
    own = {key.removeprefix(above): said for key, said in merged.items() if key.startswith(above)}
    place = next(iter(own.values())).said_at
    if name == SHORT_FORM:
        raise ConfigError(
            f"{place}: the name {SHORT_FORM!r} is taken: chains mean the group `{SHORT_FORM}` by it",
            advice="give the endpoint another name",
        )
    if not any(key in own and own[key].value for key in ("url", "path")):
        raise ConfigError(
            f"{place}: endpoints.{name} is nowhere: expected its url or its path, found neither",
            advice="url is the address of a server, path a GGUF file that the workbench serves",
        )


def names_of(said: Setting) -> tuple[str, ...]:
    """Return the names in a chain."""
    return said.value if isinstance(said.value, tuple) else ()
