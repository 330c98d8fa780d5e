"""A policy file for unattended runs: approvals, limits and tools, and nothing else."""

import os
import select
from collections.abc import Mapping
from pathlib import Path

from agent_workbench.config.layers import Layer, file_layer
from agent_workbench.config.settings_loader import LoadedSettings, combine
from agent_workbench.config.yaml_parser import read_node
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.yaml_documents.nodes import MAX_BYTES, DocumentError

ALLOWED = ("approvals.", "limits.", "tools_allowed", "sandbox.")
WAIT_SECONDS = 10.0


def load_policy(path: Path) -> Layer:
    """Return what the policy at `path` says, as a layer over the settings; raise `ConfigError` with file and line."""
    try:
        layer = file_layer(read_node(_read(path)), path.name)
    except DocumentError as fault:
        raise ConfigError(fault.in_file(str(path)), advice=fault.advice) from fault
    except OSError as error:
        raise ConfigError(f"the policy {path} cannot be read: {error.strerror}", advice="name another file") from error
    for key, said in layer.items():
        if not key.startswith(ALLOWED):
            raise ConfigError(
                f"{said.origin}: {key} does not belong in a policy",
                advice=f"a policy may set {', '.join(key.rstrip('.') for key in ALLOWED)}",
            )
    return layer


def with_policy(loaded: LoadedSettings, policy: Path, environ: Mapping[str, str]) -> LoadedSettings:
    """Return the settings with the policy over file and environment, and under the flags. Blocks."""
    lowest, environment, flags = loaded.others
    return combine(loaded.file, (lowest, environment, {**load_policy(policy), **flags}), environ.get("HOME", ""))


def _read(path: Path) -> bytes:
    """Return the bytes of a file, or of a pipe as they come; at most one more than `MAX_BYTES`. Raises `ConfigError`.

    A shell's `<(…)` is a pipe, and its program may take a moment for the first words.
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
