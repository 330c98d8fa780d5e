"""The user's own settings: `settings.yml` in the configuration folder, for all repositories."""

import json
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from agent_workbench.config.layers import Layer, file_layer
from agent_workbench.config.yaml_parser import read_node
from agent_workbench.core.errors import ConfigError, TrustError
from agent_workbench.core.yaml_documents import MAX_BYTES, DocumentError
from agent_workbench.system.atomic_files import make_directories, write_atomically
from agent_workbench.system.folder_trees import open_regular

OWN_FILE = "settings.yml"
ALLOWED = (
    "model.",
    "endpoints.",
    "roles.",
    "sampling.",
    "cost_cap_daily",
    "retrieval.embeddings.",
    "ui.",
    "language_servers",
    "mcp_servers.",
    "sandbox.unconfined",
    "sandbox.user",
    "infrastructure.",
    "hooks.",
    "worker.name",
    "worker.tags",
    "database.signing_key",
    "database.allowed_signers",
)
MODELS = ("model.", "endpoints.", "roles.")
EMBEDDINGS = "retrieval.embeddings."
ROOT = 0


def own_layer(folder: Path) -> Layer:
    """Return the layer of the user's file in `folder`, empty if there is none. Blocks.

    Raises `ConfigError` with file and line, `TrustError` if somebody else could have written the file.
    """
    path = folder / OWN_FILE
    try:
        data = _read(path)
        layer = file_layer(read_node(data) if data is not None else None, str(path))
    except DocumentError as fault:
        raise ConfigError(fault.in_file(str(path)), advice=fault.advice) from fault
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", advice="repair it, or remove it") from error
    for key, said in layer.items():
        if not key.startswith(ALLOWED):
            raise ConfigError(
                f"{said.location}: {key} does not belong in your own settings, because it depends on the repository",
                advice=f"set it in .agent.yml there; yours may set {', '.join(each.rstrip('.') for each in ALLOWED)}",
            )
    return layer


def add_model(folder: Path, model: Mapping[str, str]) -> Path | None:
    """Write these keys of `model` behind the user's settings in `folder`, whose lines stay; return the file. Blocks.

    Nothing is written where exactly these are set. Raises `ConfigError` if the file names a model or cannot be
    extended, `TrustError` as `own_layer` does.
    """
    path = folder / OWN_FILE
    block = "model:\n" + "".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in model.items())
    advice = f"write it there by hand: {' '.join(block.split())}"
    before = own_layer(folder)
    said = {f"model.{key}": value for key, value in model.items()}
    if {key: each.value for key, each in before.items() if key.startswith(MODELS)} == said:
        return None
    if any(key.startswith(MODELS) for key in before):
        raise ConfigError(f"{path} has settings of models already", advice=advice)
    text = (_read(path) or b"").decode()
    joint = text if text.endswith("\n") or not text else f"{text}\n"
    try:
        read = file_layer(read_node(f"{joint}{block}".encode()), str(path))
    except DocumentError as fault:
        raise ConfigError(fault.in_file(str(path)), advice=advice) from fault
    kept = {key: each.value for key, each in before.items()}
    if {key: each.value for key, each in read.items()} != {**kept, **said}:
        raise ConfigError(f"{path} cannot be extended", advice=advice)
    make_directories(folder)
    write_atomically(path, f"{joint}{block}".encode(), expected=text.encode() if text or path.exists() else None)
    return path


def without_replaced_models(own: Layer, repo: Layer) -> Layer:
    """Return the user's layer without the models that the repo's file replaces.

    A repo that names a model replaces all of them: the user's key would else be sent to the repo's address.
    """
    replaced = [prefixes for prefixes in (MODELS, (EMBEDDINGS,)) if _names_model(repo, prefixes)]
    gone = tuple(prefix for prefixes in replaced for prefix in prefixes)
    return {key: said for key, said in own.items() if not (gone and key.startswith(gone))}


def _names_model(layer: Layer, prefixes: tuple[str, ...]) -> bool:
    return any(key.startswith(prefixes) and key.endswith((".path", ".url")) and layer[key].value for key in layer)


def _read(path: Path) -> bytes | None:
    """Return the file's content, None if there is no file. A link is followed: many keep such files elsewhere."""
    try:
        file = os.fdopen(open_regular(path, follow=True), "rb")
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise
        return None
    with file:
        _check_writers(path, os.fstat(file.fileno()), stat.S_IWGRP | stat.S_IWOTH)
        _check_writers(path.parent, path.parent.stat(), stat.S_IWOTH)
        # One byte more than the limit, which the parser refuses.
        return file.read(MAX_BYTES + 1)


def _check_writers(path: Path, status: os.stat_result, forbidden: int) -> None:
    """Raise `TrustError` if somebody else than the user and root may write."""
    if status.st_uid not in {os.geteuid(), ROOT}:
        raise TrustError(f"{path} belongs to another user (number {status.st_uid})", advice="check it, then copy it")
    if status.st_mode & forbidden:
        raise TrustError(
            f"{path} can be written by others", advice=f"check it, then: chmod go-w {shlex.quote(str(path))}"
        )
