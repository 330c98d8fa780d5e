"""Reason why a model server ended, from its exit code and its last lines."""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from agent_workbench.core.errors import ModelUnavailable

_OWN_SERVER = "set model.server to a llama-server of your own, or model.url to the address of one that runs"
_KNOWN = (
    (r"libgomp", "install the OpenMP runtime, on Debian and Ubuntu with: apt-get install libgomp1"),
    (r"No module named '?xllamacpp", f"there is no built-in llama.cpp for this machine: {_OWN_SERVER}"),
    (r"failed to allocate|unable to allocate|out of memory|bad_alloc", "take a smaller model or context"),
    (
        r"unknown (model )?architecture|failed to load model|error loading model",
        "the GGUF file may not be whole, or too new for this llama.cpp",
    ),
    (r"invalid argument|unrecognized", "set model.server to a llama-server; this program has other options"),
)


def exit_error(returncode: int, last_lines: Sequence[str], log: Path) -> ModelUnavailable:
    """Return the error for a server that ended with `returncode` (negative: a signal) after it wrote `last_lines`."""
    said = "\n".join(last_lines)
    how = f"by signal {-returncode} ({_name(-returncode)})" if returncode < 0 else f"with exit code {returncode}"
    what = f"the model server ended {how}" + (f"; its last lines:\n{said}" if said else "")
    return ModelUnavailable(what, advice=f"{_advice(returncode, said)} (its log: {log})")


def _advice(returncode: int, said: str) -> str:
    if returncode == -signal.SIGILL:
        return f"this CPU lacks AVX2 or FMA, which the built-in llama.cpp needs: {_OWN_SERVER}"
    for pattern, advice in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            return advice
    if returncode == -signal.SIGKILL:
        return "the machine may have run out of memory: take a smaller model, or lower model.context_tokens"
    return "the next request starts it again"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
