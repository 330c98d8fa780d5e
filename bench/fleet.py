"""`python -m bench fleet`: four machines with one database and one remote, while everything goes wrong; and dispatch.

The run fails, and gives no figures, if an effect is lost or doubled, or if a forgery is not found.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import fleet_dispatch
from bench.figures import Figure
from scripts.tiny_model import write_tiny_gguf
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
from tests.postgres import running_server

SMALL = Counts(edits=3, gpu=1, large=1, model=1, person=1)
SMALL_CHAOS = FleetChaos(kills=1, freezes=1, cuts=1, restarts=0, first=1, last=5)
SEED = int(os.environ.get("BENCH_SEED", "0"))


def measure(
    counts: Counts = Counts(),  # noqa: B008 - values
    chaos: FleetChaos = FleetChaos(seed=SEED),  # noqa: B008 - values
    lease_seconds: float = 0.0,
    *,
    queued: int = fleet_dispatch.MANY,
    workers: Sequence[int] = (1, 10, 50),
) -> list[Figure]:
    """Return the figures of a run, and those of dispatch; `lease_seconds` is that of tasks (0: the usual one)."""
    return [*_run(counts, chaos, lease_seconds), *fleet_dispatch.measure(queued=queued, workers=workers)]


@contextmanager
def _fleet(counts: Counts, lease_seconds: float) -> Iterator[Fleet]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-fleet-", ignore_cleanup_errors=True) as name,
        running_server() as server,
    ):
        folder = Path(name)
        write_tiny_gguf(folder / "tiny.gguf")
        url = server.create_migrated()
        with model_server(folder / "tiny.gguf") as model:
            scene = fleet_scene(folder, {"AGENT_DATABASE_URL": url, **model.environ}, counts)
            try:
                yield Fleet(scene, server, url, lease_seconds)
            finally:
                for machine in (scene.person, *scene.workers.values()):
                    machine.end()


def _run(counts: Counts, chaos: FleetChaos, lease_seconds: float) -> list[Figure]:
    with _fleet(counts, lease_seconds) as fleet:
        fleet.queue_all()
        forge_tasks(fleet)
        began = time.monotonic()
        fleet.work(chaos)
        seconds = time.monotonic() - began
        check_forged_tasks(fleet)
        forge_worker(fleet)
        waiting = fleet.scene.tasks["person"][0]
        forge_decisions(fleet, waiting)
        check_forged_decisions(fleet, waiting)
        delays = fleet.settle()
        check_no_repetition(fleet)
        fleet.end()
        check_effects(fleet)
        check_machines(fleet)
        found = find_forgeries(fleet)
        assert all(found.values()), found
        done = sum(counts) - counts.person
        return [
            Figure(f"{done} tasks, 4 workers, {len(fleet.happened)} things went wrong", seconds, "s"),
            Figure("tasks lost", 0, "", "0"),
            Figure("tasks done twice", 0, "", "0"),
            Figure("kinds of forgeries found, of 12", len(found) + 6, "", "12"),
            Figure("from a frozen worker until another has its task, median", median(fleet.seconds_to_take_over), "s"),
            Figure("the same, longest", max(fleet.seconds_to_take_over), "s"),
            Figure("from a decision on another machine until a worker goes on", median(delays), "s", "1 s"),
        ]
