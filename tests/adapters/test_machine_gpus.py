"""Detection of GPUs by programs on the PATH that answer, fail, or hang."""

import time
from pathlib import Path

import pytest

from agent_workbench.adapters.local_machine import AFTER_HANG_SECONDS, GpuDetection
from agent_workbench.core.workers import Gpu


def smi(folder: Path, script: str) -> dict[str, str]:
    """An environment with this `nvidia-smi`, and a variable that is not passed on."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "FORGE_TOKEN": "s3cr3t"}


def test_without_driver_and_program_there_are_no_gpus_and_no_error(tmp_path: Path) -> None:
    assert GpuDetection({"PATH": str(tmp_path)}, has_driver=lambda: False).refresh() == ()


def test_nvidia_smi_is_read_where_nvml_does_not_answer(tmp_path: Path) -> None:
    script = 'echo "24564, 20480, NVIDIA GeForce RTX 4090"; echo "8192, [N/A], odd"; echo "1, 1, $FORGE_TOKEN"'
    environ = smi(tmp_path, script)
    found = GpuDetection(environ, has_driver=lambda: True).refresh()
    assert found == (Gpu("NVIDIA GeForce RTX 4090", 23.99, 20.0), Gpu("", 0.0, 0.0))
    assert GpuDetection(environ, str(tmp_path), has_driver=lambda: False).refresh() == ()


@pytest.mark.parametrize("script", ["exit 9", 'echo "no devices were found"', "head -c 3000000 /dev/zero"])
def test_a_program_that_tells_nothing_useful_gives_no_gpus(tmp_path: Path, script: str) -> None:
    assert GpuDetection(smi(tmp_path, script), has_driver=lambda: False).refresh() == ()


def test_a_program_that_hangs_is_killed_and_left_alone_for_a_while(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    now = 0.0
    detection = GpuDetection(
        smi(tmp_path, f"echo x >> {ran}; sleep 60 & wait"),
        seconds=0.3,
        monotonic=lambda: now,
        has_driver=lambda: False,
    )
    began = time.monotonic()
    assert detection.refresh() == ()
    assert time.monotonic() - began < 30
    assert detection.refresh() == ()
    assert ran.read_text() == "x\n"
    now = AFTER_HANG_SECONDS
    assert detection.refresh() == ()
    assert ran.read_text() == "x\nx\n"
