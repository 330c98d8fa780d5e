"""The settings of a run: `.agent.yml`, overridden by the environment, overridden by flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_workbench.config.layers import Layer, Setting, environment_layer, file_layer, flag_layer, server_layer
from agent_workbench.config.schema import build, leaves
from agent_workbench.config.yaml_file import read_inside, read_node
from agent_workbench.core.documents import DocumentFault
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings import Settings

FILE = ".agent.yml"
# Either a file to serve or a server that runs: who says one, unsays the other as it was said with less weight.
ALTERNATIVES = ("model.path", "model.url")
HOME_PATHS = ("model.path", "model.server")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and for each key where its value was said (`.agent.yml:3`, `environment …`, `flag`, `default`).

    `file` is what `.agent.yml` alone says; `others` are the layers around it, those of less weight first.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Layer
    others: tuple[Layer, Layer, Layer]


def load_settings(root: Path, environ: Mapping[str, str], overrides: Mapping[str, str]) -> LoadedSettings:
    """Return the settings for the repo at `root`; `overrides` are flags as dotted key to text (`model.url`).

    Raises `ConfigError` with file, line and column, variable or flag for whatever cannot be used.
    """
    data = read_inside(root, FILE)
    try:
        file = file_layer(read_node(data) if data is not None else None, FILE)
    except DocumentFault as fault:
        raise ConfigError(fault.in_file(FILE), advice=fault.advice) from fault
    others = (server_layer(environ), environment_layer(environ), flag_layer(overrides))
    return combine(file, others, environ.get("HOME", ""))


def combine(file: Layer, others: tuple[Layer, Layer, Layer], home: str) -> LoadedSettings:
    """Return the settings that the layers make together; `~` in paths of the model becomes `home`."""
    lowest, environment, flags = others
    layers = tuple(_at_home(layer, home) for layer in (lowest, file, environment, flags))
    for layer in layers:
        if all(key in layer and layer[key].value for key in ALTERNATIVES):
            places = " and ".join(layer[key].origin for key in ALTERNATIVES)
            raise ConfigError(f"model.path and model.url are both set ({places})", advice="keep one of them")
    merged = _merge(layers)
    origins = {key: merged[key].origin if key in merged else "default" for key in leaves()}
    settings = build({key: setting.value for key, setting in merged.items()})
    return LoadedSettings(settings, origins, layers[1], (layers[0], layers[2], layers[3]))


def _merge(layers: Sequence[Layer]) -> dict[str, Setting]:
    merged: dict[str, Setting] = {}
    for layer in layers:
        if any(key in layer and layer[key].value for key in ALTERNATIVES):
            for key in ALTERNATIVES:
                merged.pop(key, None)
        merged.update(layer)
    return merged


def _at_home(layer: Layer, home: str) -> Layer:
    return {
        key: Setting(_expanded(str(said.value), home), said.origin) if key in HOME_PATHS else said
        for key, said in layer.items()
    }


def _expanded(path: str, home: str) -> str:
    return f"{home}{path[1:]}" if home and (path == "~" or path.startswith("~/")) else path
