"""What `make` says to somebody who runs it for the first time."""

import shutil
import subprocess

import pytest

from tests.architecture.source_tree import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="machine lacks: make")
def test_the_first_time_it_says_that_it_takes_a_while() -> None:
    # As if the lock had just been changed; nothing of it is run.
    assert "a minute or two" in said_before_pip("requirements-dev.lock", "setup")


@pytest.mark.skipif(shutil.which("make") is None, reason="machine lacks: make")
def test_the_demo_needs_the_base_alone() -> None:
    assert "half a minute" in said_before_pip("requirements.lock", "run")
    assert "requirements-dev.lock" not in dry_run("requirements.lock", "run")


def dry_run(changed: str, target: str) -> str:
    command = ["make", "--dry-run", f"--what-if={changed}", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def said_before_pip(changed: str, target: str) -> str:
    before, pip, _ = dry_run(changed, target).partition(f"-r {changed}")
    assert pip
    return before
