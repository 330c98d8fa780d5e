"""Test suites of other projects, run in the sandbox and outside of it: the sandbox breaks none of their tests.

execnet starts interpreters and talks to them over pipes and sockets; joblib starts pools of processes with threads,
semaphores and shared memory. Each suite comes from its source distribution, so a package index is needed.
"""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shlex import split
from xml.etree import ElementTree

import pytest

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.settings import SandboxSettings

SUITE_SECONDS = 250
REPORT = "report.xml"
SUITES = {
    "execnet==2.1.2": "testing",
    "joblib==1.6.0": "--pyargs joblib.test.test_parallel joblib.test.test_store_backends -k multiprocessing",
}


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.timeout(4 * SUITE_SECONDS)
@pytest.mark.parametrize("package", SUITES)
async def test_every_test_that_passes_outside_passes_inside(package: str, tmp_path: Path) -> None:
    folder = unpacked(package, tmp_path)
    line = f"{installed(folder, tmp_path)} -m pytest -q --timeout=60 --junitxml={REPORT} {SUITES[package]}"
    shell = SandboxedShell(SandboxSettings(), str(tmp_path), os.environ)

    async def passed_inside() -> set[str]:
        outcome = await shell.run(Command(line, str(folder), SUITE_SECONDS, {}), lambda _: None)
        assert not outcome.reason, outcome.reason
        return passed(folder / REPORT)

    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # as all commands have it, and one test is about it
    subprocess.run(split(line), cwd=folder, env=environ, capture_output=True, check=False, timeout=SUITE_SECONDS)
    outside = passed(folder / REPORT)
    assert len(outside) >= 20
    missing = outside - await passed_inside()
    if missing:  # some tests depend on the load of the machine: a second try
        missing -= await passed_inside()
    assert not missing


def unpacked(package: str, folder: Path) -> Path:
    """Return the folder of a source distribution, fetched and unpacked."""
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*download, "-d", str(folder), package], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def installed(package: Path, folder: Path) -> Path:
    """Return an interpreter of its own that has the package and pytest."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", "pytest", "pytest-timeout", str(package)], check=True)
    return python


def passed(report: Path) -> set[str]:
    """Return the names of the tests that passed, and remove the report in JUnit's format."""
    cases = [case for case in ElementTree.parse(report).iter("testcase") if len(case) == 0]
    report.unlink()
    return {f"{case.get('classname')}::{case.get('name')}" for case in cases}
