"""What `make` says to somebody who runs it for the first time."""

import shutil
import subprocess

import pytest

from tests.architecture.source_tree import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="machine lacks: make")
def test_the_first_time_it_says_that_it_takes_a_while() -> None:
    # As if the lock had just been changed; nothing of it is run.
    command = ["make", "--dry-run", "--what-if=requirements-dev.lock", "setup"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    before, pip, _ = shown.partition("pip install")
    assert pip
    assert "a minute or two" in before
