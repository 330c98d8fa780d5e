"""The lines of the README that install the command, and the advice for an extra that is missing after each."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.machine import CHECKOUT, Machine
from tests.judges.downloads import fetch
from tests.judges.npm import INDEX
from tests.test_readme import block

pytestmark = pytest.mark.timeout(900)

USUAL = "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.parametrize("line", block("install"))
def test_a_line_installs_the_command_and_the_advice_adds_an_extra(tmp_path: Path, line: str) -> None:
    machine = Machine(tmp_path / "user")
    program = shlex.split(line)[0]
    clone, tools, bin_folder = tmp_path / "clone", tmp_path / "tools", tmp_path / "bin"
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
    fetch([sys.executable, "-m", "venv", str(tools)], INDEX)
    path = f"{bin_folder}:{tools}/bin:{USUAL}"
    if program == "pip":
        bin_folder = tools / "bin"
        build = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
        subprocess.run(build, cwd=clone, check=True, capture_output=True)
    else:
        fetch([f"{tools}/bin/pip", "install", "-q", program, "uv"], INDEX)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "UV_", "http"))}
    machine.environ |= {**kept, "PATH": path, "UV_TOOL_BIN_DIR": str(bin_folder), "PIPX_BIN_DIR": str(bin_folder)}

    def ran(words: str) -> None:
        fetch(["env", "-i", *(f"{name}={value}" for name, value in machine.environ.items()), "sh", "-c", words], INDEX)

    ran(f"cd {shlex.quote(str(clone))} && {' '.join(shlex.split(line))}")  # so that the shell finds the wheel
    agent = str(bin_folder / "agent")
    assert machine.run([agent, "--version"], machine.home).out.startswith("agent ")
    refused = machine.run([agent, "acp"], machine.home)
    assert refused.code == 4, refused.said
    (advice,) = [each.partition("install it: ")[2] for each in refused.err.splitlines() if "install it: " in each]
    ran(advice)
    # Without an editor on the other side it ends at once.
    assert machine.run([agent, "acp"], machine.home).code == 0
