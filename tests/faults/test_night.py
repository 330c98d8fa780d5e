"""A short night: workers are killed, the model's server and the disk go away, and every task ends where it belongs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.machine import Machine
from tests.fakes.forge_server import bare_remote
from tests.fakes.gitea_server import gitea_server
from tests.faults.night import NIGHT_SECONDS, Chaos, Night
from tests.faults.night_chaos import model_server
from tests.faults.night_forge import ForgeSide
from tests.faults.night_scene import Counts

SHORT = Counts(edits=2, model=1, person=2, forge=1, broken=2, slow=1)


@pytest.fixture
def night(tmp_path: Path, tiny_model_path: Path, needs_sandbox: None) -> Iterator[Night]:
    with model_server(tiny_model_path) as model, gitea_server(bare_remote(tmp_path / "remote.git")) as server:
        forge = ForgeSide(server)
        machine = Machine(tmp_path / "machine", {**model.environ, **forge.environ}, forks=True)
        night = Night(machine, model, forge, SHORT)
        yield night
        machine.end()
        night.disk.end()


@pytest.mark.slow
@pytest.mark.timeout(NIGHT_SECONDS)
def test_a_short_night(night: Night) -> None:
    night.work(Chaos(kills=2, restarts=1, full_disks=1, seed=15, first_event=10, last_event=120))
    night.check_night()
    night.settle()
