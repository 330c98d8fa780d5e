import signal
from pathlib import Path

import pytest

from agent_workbench.adapters.llama_cpp.embedded_server import exit_error


@pytest.mark.parametrize(
    ("returncode", "said", "advice"),
    [
        (1, "ImportError: libgomp.so.1: cannot open shared object file", "apt-get install libgomp1"),
        (1, "ModuleNotFoundError: No module named 'xllamacpp'", "model.server"),
        (-signal.SIGILL, "", "AVX2"),
        (-signal.SIGKILL, "", "out of memory"),
        (1, "ggml_aligned_malloc: failed to allocate 80 GB", "smaller model"),
        (1, "E load_model: failed to load model, 'x.gguf'", "GGUF"),
        (1, "error: invalid argument: -np", "llama-server"),
        (-signal.SIGSEGV, "", "starts it again"),
    ],
)
def test_says_what_can_be_done(returncode: int, said: str, advice: str) -> None:
    error = exit_error(returncode, [said] if said else [], Path("state/server.log"))
    assert advice in error.advice
    assert "state/server.log" in error.advice
    assert said in str(error)


def test_names_the_signal() -> None:
    assert "signal 9 (SIGKILL)" in str(exit_error(-9, [], Path("log")))
    assert "signal 99 (unknown)" in str(exit_error(-99, [], Path("log")))
    assert "exit code 3" in str(exit_error(3, [], Path("log")))
