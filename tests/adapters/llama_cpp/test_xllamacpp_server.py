import subprocess
import sys
from pathlib import Path

SERVE = [sys.executable, "-m", "agent_workbench.adapters.llama_cpp.xllamacpp_server"]


def test_serves_nobody_without_a_key(tiny_model_path: Path) -> None:
    done = subprocess.run(
        [*SERVE, str(tiny_model_path)], env={}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "LLAMA_API_KEY" in done.stderr


def test_a_model_that_cannot_be_loaded_is_an_exit_code_and_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SERVE, str(tmp_path / "none.gguf")],
        env={"LLAMA_API_KEY": "k"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "failed to load model" in done.stderr
    assert "Traceback" not in done.stderr
