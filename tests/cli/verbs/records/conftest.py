"""The repository of a demo that has run, once for all tests that need one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from tests.e2e.machine import Machine


class FinishedDemo(Struct, frozen=True):
    """A machine with the repository of its demo: T-1 and T-2 are done and not merged."""

    machine: Machine
    kept: Path

    @property
    def repo(self) -> Path:
        return self.machine.folder / "shop"

    def restore(self) -> None:
        """Make the machine what it was after the demo, at the same paths: worktrees and state name them."""
        shutil.rmtree(self.machine.folder)
        shutil.copytree(self.kept, self.machine.folder, symlinks=True)


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedDemo]:
    """The demo that ran. Tests that change it, or its machine, restore it first."""
    folder = tmp_path_factory.mktemp("finished")
    machine = Machine(folder / "machine", forks=True)
    assert machine.agent("demo", "--headless", "--folder", str(machine.folder / "shop"), cwd=machine.home).code == 0
    shutil.copytree(machine.folder, folder / "kept", symlinks=True)
    yield FinishedDemo(machine, folder / "kept")
    machine.end()
