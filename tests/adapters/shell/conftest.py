"""A folder to work in beside one that must stay as it is, and shells for both kinds of confinement."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct, field

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings import SandboxSettings


class Bench(Struct):
    """A shell with the folder it works in and all that was said while commands ran."""

    shell: SandboxedShell
    folder: Path
    pieces: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    async def run(
        self,
        line: str,
        *,
        seconds: float = 20,
        environment: dict[str, str] | None = None,
        writable: tuple[str, ...] = (),
        linked: tuple[str, ...] = (),
    ) -> CommandOutcome:
        added = self.environment | (environment or {})
        command = Command(line, str(self.folder), seconds, added, writable, linked=linked)
        return await self.shell.run(command, self.pieces.append)


MakeBench = Callable[..., Bench]


async def until(condition: Callable[[], bool], seconds: float) -> None:
    """Return when the condition holds; fail when it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{condition} did not come true"
        await asyncio.sleep(0.01)


def without_bwrap() -> dict[str, str]:
    """An environment in which bubblewrap is not found."""
    return {"PATH": "/nonexistent/bin", "HOME": os.environ["HOME"]}


@pytest.fixture
def make_bench(tmp_path: Path) -> MakeBench:
    folder = tmp_path / "work"
    folder.mkdir()

    def make(settings: SandboxSettings | None = None, parent: dict[str, str] | None = None) -> Bench:
        environment = dict(os.environ) if parent is None else parent
        return Bench(SandboxedShell(settings or SandboxSettings(), str(tmp_path), environment), folder)

    return make


@pytest.fixture
def confined(make_bench: MakeBench, needs_sandbox: None) -> Bench:
    return make_bench()


@pytest.fixture
def unconfined(make_bench: MakeBench) -> Bench:
    bench = make_bench(parent=without_bwrap())
    bench.environment["PATH"] = os.defpath
    return bench


@pytest.fixture(params=["confined", "unconfined"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Both kinds: what holds for a command holds with a sandbox and without."""
    found: Bench = request.getfixturevalue(request.param)
    return found
