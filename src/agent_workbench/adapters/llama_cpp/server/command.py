"""Command line of a model server: the user's own `llama-server`, or the one that comes with the workbench."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.server.xllamacpp_server import API_KEY_VARIABLE
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.local_models.server_options import ServerOptions
from agent_workbench.core.settings.models import CacheType
from agent_workbench.system.programs import child_environment, find_program

# Variables that select and configure graphics cards.
_OF_DEVICES = (
    "GGML_",
    "LLAMA_ARG_",
    "CUDA_",
    "NVIDIA_",
    "HIP_",
    "HSA_",
    "ROCR_",
    "VK_",
    "OMP_",
    "GOMP_",
)
_PACKAGE_FOLDER = Path(__file__).resolve().parents[4]


class ServerCommand(Struct, frozen=True):
    """A command line without secrets, and the environment with the API key."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


def server_command(
    model: Path,
    *,
    options: ServerOptions,
    server: str,
    api_key: str,
    environ: Mapping[str, str],
    embeddings: bool = False,
) -> ServerCommand:
    """Return how to serve `model` on a free port of 127.0.0.1, by the binary `server` or (empty) by what we bring.

    With `embeddings` it serves vectors of texts that have at most as many tokens as the context, in place of answers.
    Raises `ModelUnavailable` when there is no such binary.
    """
    # Threads that wait for each other sleep at once. Where others want the cores too, one that spins takes its turn
    # from the thread it waits for. The user's own variable wins.
    environment = {"OMP_WAIT_POLICY": "passive"} | child_environment(environ, *_OF_DEVICES)
    environment[API_KEY_VARIABLE] = api_key
    # Else a server that aborts has itself looked at by a debugger first, for seconds and a hundred lines.
    environment["GGML_NO_BACKTRACE"] = "1"
    context, cache = str(options.context_tokens), str(options.cache_type)
    if server:
        binary = _binary(server, environ)
        argv = [binary, "-m", str(model), "--host", "127.0.0.1", "--port", "0", "-np", "1", "-c", context]
        # Without an alias the model's name is its whole path, which would get into journals.
        argv += ["--alias", model.name]
        argv += ["-t", str(options.threads)] if options.threads else []
        argv += ["-ngl", str(options.gpu_layers)] if options.gpu_layers is not None else []
        argv += ["-ctk", cache, "-ctv", cache] if options.cache_type is not CacheType.F16 else []
        # A text is embedded in one batch. After each batch of a prompt the server says how much it has read; it
        # computes no more than its default of `-ub` at once anyway.
        argv += ["--embeddings", "-b", context, "-ub", context] if embeddings else ["-b", "512"]
    else:
        # `-P`: modules in the current folder must not replace ours.
        argv = [sys.executable, "-P", "-m", "agent_workbench.adapters.llama_cpp.server.xllamacpp_server", str(model)]
        argv += ["--context-tokens", context, "--threads", str(options.threads), "--alias", model.name]
        argv += ["--cache-type", cache, "--cache-megabytes", str(options.prompt_cache_bytes >> 20)]
        argv += ["--gpu-layers", str(options.gpu_layers)] if options.gpu_layers is not None else []
        argv += ["--embeddings"] if embeddings else []
        environment |= {"PYTHONPATH": str(_PACKAGE_FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    return ServerCommand(tuple(argv), environment)


def _binary(server: str, environ: Mapping[str, str]) -> str:
    found = find_program(os.path.expanduser(server), environ.get("PATH", ""))  # noqa: PTH111 - a bare name is no path
    if not found:
        raise ModelUnavailable(
            f"the program {server} was not found",
            advice="set model.server (or LLAMA_SERVER) to a llama-server; without it the built-in one is used",
        )
    return found
