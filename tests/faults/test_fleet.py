"""A small fleet: killed and frozen workers, cut connections, a restarted database, forged rows; each effect once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet, FleetChaos, check_effects, check_machines
from tests.faults.fleet_forgery import (
    check_forged_decisions,
    check_forged_tasks,
    check_no_repetition,
    find_forgeries,
    forge_decisions,
    forge_tasks,
    forge_worker,
)
from tests.faults.fleet_scene import Counts, fleet_scene
from tests.faults.night_chaos import model_server
from tests.postgres import PostgresServer

SMALL = Counts(edits=3, gpu=1, large=2, model=1, person=1)
LEASE_SECONDS = 4.0


@pytest.fixture
def fleet(tmp_path: Path, tiny_model_path: Path, own_postgres: PostgresServer, needs_sandbox: None) -> Iterator[Fleet]:
    url = own_postgres.create_migrated()
    with model_server(tiny_model_path) as model:
        scene = fleet_scene(tmp_path, {"AGENT_DATABASE_URL": url, **model.environ}, SMALL)
        fleet = Fleet(scene, own_postgres, url, LEASE_SECONDS)
        yield fleet
        for machine in (scene.person, *scene.workers.values()):
            machine.end()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_small_fleet(fleet: Fleet) -> None:
    fleet.queue_all()
    forge_tasks(fleet)
    fleet.work(FleetChaos(kills=1, freezes=1, cuts=1, restarts=1, seed=16, first=1, last=6))
    check_forged_tasks(fleet)
    (task,) = fleet.scene.tasks["person"]
    forge_worker(fleet)
    forge_decisions(fleet, task)
    check_forged_decisions(fleet, task)
    fleet.settle()
    check_no_repetition(fleet)
    ends = fleet.end()
    assert {end.code for end in ends} == {130}, [end.said for end in ends]
    check_effects(fleet)
    check_machines(fleet)
    found = find_forgeries(fleet)
    assert all(found.values()), found
