"""Command line of a model server: the user's own `llama-server`, or the one that comes with the workbench."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.server.xllamacpp_server import API_KEY_VARIABLE
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.system.programs import child_environment, find_program
from agent_workbench.system.regular_files import open_regular

_MAGIC = b"GGUF"
_TINY_BYTES = 50_000_000
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
    context_tokens: int,
    server: str,
    api_key: str,
    environ: Mapping[str, str],
    embeddings: bool = False,
) -> ServerCommand:
    """Return how to serve `model` on a free port of 127.0.0.1, by the binary `server` or (empty) by what we bring.

    With `embeddings` it serves vectors of texts that have at most `context_tokens`, in place of answers.
    Raises `ModelUnavailable` when the file is not there or no GGUF, or when there is no such binary.
    """
    threads = 1 if _model_bytes(model) < _TINY_BYTES else _cores()
    environment = child_environment(environ, *_OF_DEVICES)
    environment[API_KEY_VARIABLE] = api_key
    # Else a server that aborts has itself looked at by a debugger first, for seconds and a hundred lines.
    environment["GGML_NO_BACKTRACE"] = "1"
    if server:
        binary = _binary(server, environ)
        argv = [binary, "-m", str(model), "--host", "127.0.0.1", "--port", "0", "-np", "1", "-c", str(context_tokens)]
        # Without an alias the model's name is its whole path, which would get into journals.
        argv += ["--alias", model.name]
        # Its own choice is good, except for tiny models, where threads only wait for each other.
        argv += ["-t", "1"] if threads == 1 else []
        # A text is embedded in one batch.
        argv += ["--embeddings", "-b", str(context_tokens), "-ub", str(context_tokens)] if embeddings else []
    else:
        # `-P`: modules in the current folder must not replace ours.
        argv = [sys.executable, "-P", "-m", "agent_workbench.adapters.llama_cpp.server.xllamacpp_server", str(model)]
        argv += ["--context-tokens", str(context_tokens), "--threads", str(threads), "--alias", model.name]
        argv += ["--embeddings"] if embeddings else []
        environment |= {"PYTHONPATH": str(_PACKAGE_FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    return ServerCommand(tuple(argv), environment)


def check_model_file(model: Path) -> None:
    """Raise `ModelUnavailable` for a file that cannot be read or is not a GGUF."""
    _model_bytes(model)


def _model_bytes(model: Path) -> int:
    advice = "set model.path to a GGUF file"
    try:
        with os.fdopen(open_regular(model, follow=True), "rb") as file:
            begins, size = file.read(len(_MAGIC)), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ModelUnavailable(f"the model {model} cannot be read: {error.strerror}", advice=advice) from error
    if begins != _MAGIC:
        raise ModelUnavailable(f"{model} is no GGUF file: it begins with {begins!r}", advice=advice)
    return size


def _binary(server: str, environ: Mapping[str, str]) -> str:
    found = find_program(os.path.expanduser(server), environ.get("PATH", ""))  # noqa: PTH111 - a bare name is no path
    if not found:
        raise ModelUnavailable(
            f"the program {server} was not found",
            advice="set model.server (or LLAMA_SERVER) to a llama-server; without it the built-in one is used",
        )
    return found


def _cores() -> int:
    """Return the number of physical cores we may use; two threads on one core only wait for each other."""
    if not hasattr(os, "sched_getaffinity"):
        return max(1, os.cpu_count() or 1)
    cpus = os.sched_getaffinity(0)
    siblings = {_siblings(cpu) for cpu in cpus}
    return max(1, len(siblings))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(cpu)
