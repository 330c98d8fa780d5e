"""Hooks in the settings: their names, and the checks after all layers are merged."""

from agent_workbench.config.layers import Layer, SourcedValue
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings.hooks import HookPoint

HOOKS = "hooks."
MAX_HOOKS = 20
NEEDED = {
    "command": "command is a line for the shell, which reads the event as JSON on its standard input",
    "events": f"events are some of {', '.join(HookPoint)}",
}


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
