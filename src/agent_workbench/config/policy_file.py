"""Policy file of an unattended run: approvals, limits and tools."""

import os
import select
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.config.layers import Layer, file_layer
from agent_workbench.config.settings_loader import LoadedSettings, combine_layers
from agent_workbench.config.yaml_parser import read_node
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.yaml_documents import MAX_BYTES, DocumentError

ALLOWED = ("approvals.", "limits.", "tools_allowed", "sandbox.")
WAIT_SECONDS = 10.0


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
