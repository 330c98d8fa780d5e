"""Loader of the settings: the user's own file, `.agent.yml`, the environment and flags; and of a run's policy."""

import os
import select
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.config.env_file import EnvFile, read_env_file
from agent_workbench.config.layers import (
    Layer,
    SourcedValue,
    env_file_layer,
    environment_layer,
    file_layer,
    flag_layer,
    server_layer,
)
from agent_workbench.config.own_settings import OWN_FILE, own_layer, without_replaced_models
from agent_workbench.config.role_chains import (
    chain_names,
    check_chains,
    check_hooks,
    endpoint_names,
    hook_names,
    role_chains,
    without_hooks,
    without_unknown_endpoints,
)
from agent_workbench.config.schema import ANY, build, known_key, setting_keys
from agent_workbench.config.tool_servers import (
    check_own_servers,
    check_servers,
    server_names,
    shared_servers,
    without_servers,
)
from agent_workbench.config.yaml_parser import read_node
from agent_workbench.core.errors import ConfigError, StorageError
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.extensions import InfrastructureSettings
from agent_workbench.core.settings.models import SHORT_FORM
from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.yaml_documents import MAX_BYTES, DocumentError
from agent_workbench.system.repo_files import read_inside

FILE = ".agent.yml"
# A model file or the address of a server: one of them overrides the other from a layer of lower priority.
ALTERNATIVES = ("path", "url")
HOME_PATHS = {
    *("model.path", "model.server", "endpoints.*.path", "endpoints.*.server", "retrieval.embeddings.path"),
    *("database.signing_key", "database.allowed_signers"),
}
# Mappings from text to text: a source changes single entries, not all of them.
MAPPINGS = {"ui.keys"}
# Keys that no repository may set, with the reason.
USER_ONLY = {
    "ui.mode": "a repository cannot choose how much is approved without a question",
    "sandbox.unconfined": "a repository cannot choose that nothing confines what it runs",
    "sandbox.user": "which users there are depends on the machine",
    "worker.name": "a repository cannot name your machines",
    "worker.tags": "a repository cannot say what your machines are for",
    "database.signing_key": "a repository cannot choose who signs for you",
    "database.allowed_signers": "a repository cannot choose whose signatures count",
    **{
        f"infrastructure.{name}": "a repository cannot choose which of your keys and passwords are used"
        for name in InfrastructureSettings.__struct_fields__
    },
}

ALLOWED = ("approvals.", "limits.", "tools_allowed", "sandbox.")
WAIT_SECONDS = 10.0


class Layers(Struct, frozen=True):
    """Layers of all sources, lowest priority first: llama.cpp's variables, the user's file, `.agent.yml`, …

    `env_file` is the repo's `.env`, between `.agent.yml` and the environment, and empty without trust.
    """

    server: Layer
    own: Layer
    repo: Layer
    environment: Layer
    flags: Layer
    env_file: Layer = field(default_factory=dict)

    @property
    def lowest_first(self) -> tuple[Layer, ...]:
        """All layers."""
        return self.server, self.own, self.repo, self.env_file, self.environment, self.flags


class LoadedSettings(Struct, frozen=True):
    """Settings with the origin of each value (`.agent.yml:3`, `environment …`, `flag`, `default`).

    `left_out` tells which servers of `.mcp.json` cannot be used, and why. `env_file` is the repo's `.env`, which counts
    with trust only.
    """

    settings: Settings
    origins: Mapping[str, str]
    layers: Layers
    left_out: tuple[str, ...] = ()
    env_file: EnvFile = field(default_factory=EnvFile)

    @property
    def unused(self) -> Mapping[str, str]:
        """Keys of the two files whose value is not in force, with the origin of that value."""
        files = (self.layers.own, self.layers.repo)
        found = ((key, said.origin) for layer in files for key, said in layer.items())
        return {key: origin for key, origin in found if origin not in self.origins.get(key, "")}


def load_settings(
    root: Path, environ: Mapping[str, str], overrides: Mapping[str, str], own_folder: Path | None = None
) -> LoadedSettings:
    """Return the settings for the repo at `root`; `overrides` are flags as dotted key to text (`model.url`).

    `own_folder` holds the user's own settings. Raises `ConfigError` that names file, line and column, or the variable
    or flag.
    """
    data = _read_file(root)
    try:
        file = file_layer(read_node(data) if data is not None else None, FILE)
    except DocumentError as fault:
        raise ConfigError(fault.in_file(FILE), advice=fault.advice) from fault
    for key in file.keys() & USER_ONLY.keys():
        raise ConfigError(
            f"{file[key].location}: {key} does not belong in a repository's file: {USER_ONLY[key]}",
            advice=f"remove it; your own is set in {(own_folder or Path()) / OWN_FILE}",
        )
    own = own_layer(own_folder) if own_folder is not None else {}
    check_own_servers(own)
    shared, env_file = shared_servers(root), read_env_file(root, environ)
    repo = {**shared.layer, **file}
    layers = Layers(server_layer(environ), own, repo, environment_layer(environ), flag_layer(overrides))
    loaded = replace(combine_layers(layers, environ.get("HOME", "")), left_out=shared.problems, env_file=env_file)
    if "model.name" in overrides and not (loaded.settings.model.url or env_file.values):
        raise ConfigError(
            f"--model-name {quoted(overrides['model.name'])}: model.url names no server that has it",
            advice="name the server with --model-url; an endpoint has its own `model`",
        )
    return loaded


def _read_file(root: Path) -> bytes | None:
    """Return the content of the settings file, None if there is none; raise `ConfigError`."""
    try:
        data = read_inside(root, FILE, MAX_BYTES)
    except StorageError as error:
        raise ConfigError(str(error), advice=error.advice) from error
    if data is None and (root / FILE).is_symlink():
        raise ConfigError(f"{FILE} is a broken link to {(root / FILE).readlink()}", advice="fix the link, or remove it")
    return data


def with_env_file(loaded: LoadedSettings) -> LoadedSettings:
    """Return the settings with the repo's `.env` in force; raise `ConfigError` that names its line."""
    if not loaded.env_file.values:
        return loaded
    layer = dict(env_file_layer(loaded.env_file))
    if loaded.layers.server.keys() & {"model.url"}:  # LLAMA_SERVER_URL is a variable of the environment too
        layer.pop("model.url", None)
    combined = combine_layers(replace(loaded.layers, env_file=layer), home="")
    return replace(combined, left_out=loaded.left_out, env_file=loaded.env_file)


def combine_layers(layers: Layers, home: str, *, partial: bool = False) -> LoadedSettings:
    """Return the settings of all layers together; `~` in paths of models becomes `home`.

    With `partial` a part of the repo's file was left out, and chains that name its endpoints are left out too.
    """
    layers = replace(layers, server=_expand_home(layers.server, home), own=_expand_home(layers.own, home))
    layers = replace(layers, repo=_expand_home(layers.repo, home), flags=_expand_home(layers.flags, home))
    layers = replace(layers, environment=_expand_home(layers.environment, home))
    for layer in layers.lowest_first:
        for both in _alternatives(layer):
            if all(key in layer and layer[key].value for key in both):
                places = " and ".join(layer[key].location for key in both)
                raise ConfigError(f"{' and '.join(both)} are both set ({places})", advice="keep one of them")
    merged = _merge(layers)
    merged = without_unknown_endpoints(merged) if partial else merged
    check_chains(merged)
    check_servers(merged)
    check_hooks(merged)
    origins = {key: "default" for key in setting_keys() if ANY not in key} | {key: merged[key].origin for key in merged}
    settings = build({key: setting.value for key, setting in merged.items()})
    return LoadedSettings(settings, origins, layers)


def _alternatives(layer: Layer) -> list[tuple[str, ...]]:
    """Return groups of keys that exclude each other: in `model`, the embeddings and each endpoint."""
    groups = ("model", "retrieval.embeddings", *(f"endpoints.{name}" for name in endpoint_names(layer)))
    return [tuple(f"{group}.{key}" for key in ALTERNATIVES) for group in groups]


def _merge(layers: Layers) -> Layer:
    merged: dict[str, SourcedValue] = {}
    named = {**layers.repo, **layers.env_file}
    own = without_servers(without_replaced_models(layers.own, named), server_names(layers.repo))
    repo = without_hooks(layers.repo, hook_names(layers.own))
    others = (own, repo, layers.env_file, layers.environment, layers.flags)
    for layer in (_server_variables(layers.server, others), *others):
        for both in _alternatives(layer):
            if any(key in layer and layer[key].value for key in both):
                for key in both:
                    merged.pop(key, None)
        merged.update({**layer, **_joined_mappings(merged, layer)})
    return _without_chains(merged, layers.flags)


def _joined_mappings(lower: Layer, layer: Layer) -> Layer:
    """Return the mappings from text to text that are in both layers, with the entries of both."""
    joined: dict[str, SourcedValue] = {}
    for key in lower.keys() & layer.keys() & MAPPINGS:
        below, above = lower[key], layer[key]
        if isinstance(below.value, tuple) and isinstance(above.value, tuple):
            value = tuple((dict(below.value) | dict(above.value)).items())
            joined[key] = SourcedValue(value, f"{below.origin}, {above.origin}", above.place)
    return joined


def _server_variables(lowest: Layer, others: Sequence[Layer]) -> Layer:
    """Return the layer of llama.cpp's variables, without the address if endpoints make it unused."""
    named = any(endpoint_names(layer) for layer in others)
    if not named or any(SHORT_FORM in chain_names(said) for layer in others for _, said in role_chains(layer)):
        return lowest
    return {key: said for key, said in lowest.items() if key != "model.url"}


def _without_chains(merged: dict[str, SourcedValue], flags: Layer) -> Layer:
    """Return the layer without chains if a flag names the model, which then serves every role."""
    if not any(flags[key].value for key in ("model.path", "model.url", "model.name") if key in flags):
        return merged
    return {key: said for key, said in merged.items() if not key.startswith("roles.") or key in flags}


def _expand_home(layer: Layer, home: str) -> Layer:
    known = setting_keys()
    return {
        key: replace(said, value=_expand(str(said.value), home)) if known_key(key, known) in HOME_PATHS else said
        for key, said in layer.items()
    }


def _expand(path: str, home: str) -> str:
    return f"{home}{path[1:]}" if home and (path == "~" or path.startswith("~/")) else path


def load_policy(path: Path) -> Layer:
    """Return the policy at `path` as a layer over the settings; raise `ConfigError` with file and line."""
    try:
        layer = file_layer(read_node(_read(path)), path.name)
    except DocumentError as fault:
        raise ConfigError(fault.in_file(str(path)), advice=fault.advice) from fault
    except OSError as error:
        raise ConfigError(f"the policy {path} cannot be read: {error.strerror}", advice="name another file") from error
    for key, said in layer.items():
        if not key.startswith(ALLOWED):
            raise ConfigError(
                f"{said.location}: {key} does not belong in a policy",
                advice=f"a policy may set {', '.join(key.rstrip('.') for key in ALLOWED)}",
            )
    return layer


def with_policy(loaded: LoadedSettings, policy: Path, environ: Mapping[str, str]) -> LoadedSettings:
    """Return the settings with the policy above files and environment and below the flags. Blocks."""
    layers = replace(loaded.layers, flags={**load_policy(policy), **loaded.layers.flags})
    combined = combine_layers(layers, environ.get("HOME", ""))
    return replace(combined, left_out=loaded.left_out, env_file=loaded.env_file)


def _read(path: Path) -> bytes:
    """Return the bytes of a file or a pipe, at most one more than `MAX_BYTES`; raise `ConfigError`.

    A shell's `<(…)` is a pipe whose program may need a moment before it writes.
    """
    data = b""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        while len(data) <= MAX_BYTES:
            ready, _, _ = select.select([file], [], [], WAIT_SECONDS)
            if not ready:
                raise ConfigError(
                    f"the policy {path} is a pipe, and nothing came out of it for {WAIT_SECONDS:.0f} seconds",
                    advice="start the program that writes it, or write the policy into a file",
                )
            if not (more := file.read(MAX_BYTES + 1 - len(data))):
                break
            data += more
    return data
