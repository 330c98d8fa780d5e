"""`python -m bench night`: a night of a queue's workers, with everything that goes wrong in it, and what a task costs.

The night fails, and gives no figures, if a task does not end where it belongs, once, or if an effect has no approval.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median

import psutil

from bench.figures import Figure
from scripts.tiny_model import write_tiny_gguf
from tests.e2e.machine import Machine, bodies
from tests.fakes.forge_server import bare_remote
from tests.fakes.gitea_server import gitea_server
from tests.faults.night import Chaos, Night
from tests.faults.night_audit import ended, journals
from tests.faults.night_chaos import Workers, model_server
from tests.faults.night_forge import ForgeSide
from tests.faults.night_scene import Counts, night_scene, queue_all

FIRST_TASKS = 10
SHORT = Counts(edits=1, model=1, person=1, forge=0, broken=1, slow=0)
SHORT_CHAOS = Chaos(kills=1, restarts=1, full_disks=0, last_event=60)
WAIT_SECONDS = 1800.0
SEED = int(os.environ.get("BENCH_SEED", "0"))


def measure(counts: Counts = Counts(), chaos: Chaos = Chaos(seed=SEED), tasks: int = 200) -> list[Figure]:  # noqa: B008 - values
    """Return the figures of a night, and of `tasks` tasks that need no model."""
    return [*_night(counts, chaos), *_edits(tasks)]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-night-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _night(counts: Counts, chaos: Chaos) -> list[Figure]:
    with _folder() as folder:
        write_tiny_gguf(folder / "tiny.gguf")
        with model_server(folder / "tiny.gguf") as model, gitea_server(bare_remote(folder / "remote.git")) as server:
            forge = ForgeSide(server)
            machine = Machine(folder / "machine", {**model.environ, **forge.environ}, forks=True)
            night = Night(machine, model, forge, counts)
            try:
                began = time.monotonic()
                night.work(chaos)
                seconds = time.monotonic() - began
                night.check_night()
                delays = night.settle()
            finally:
                machine.end()
                night.disk.end()
    went_wrong = len(night.happened)
    return [
        Figure(f"a night of {sum(counts)} tasks, {went_wrong} things went wrong", seconds, "s"),
        Figure("from a decision until a worker goes on", median(delays), "s", "1 s"),
    ]


def _edits(tasks: int) -> list[Figure]:
    """Return what tasks without a model cost one worker."""
    with _folder() as folder:
        machine = Machine(folder / "machine")
        scene = night_scene(machine, Counts(edits=tasks, model=0, person=0, forge=0, broken=0, slow=0))
        queue_all(scene)
        workers, memory = Workers(machine, scene, 1), list[float]()
        try:
            worker = psutil.Process(workers.running[0].process.pid)
            deadline = time.monotonic() + WAIT_SECONDS
            for wanted in (min(FIRST_TASKS, tasks), tasks):
                while len(ended(scene, "done")) < wanted:
                    assert time.monotonic() < deadline, workers.logs()[-2000:]
                    time.sleep(0.05)
                memory.append(worker.memory_info().rss / 2**20)
            workers.end()
        finally:
            machine.end()
        lines = [lines for _, lines in journals(scene.repo)]
    spans = [(_moment(each[0]["time"]), _moment(each[-1]["time"])) for each in lines]
    busy = max(end for _, end in spans) - min(start for start, _ in spans)
    checks = [
        sum(result["seconds"] for body in bodies(each, "tests_finished") for result in body["results"])
        for each in lines
    ]
    alone = [end - start - check for (start, end), check in zip(spans, checks, strict=True)]
    return [
        Figure("tasks an hour without a model, one at a time", tasks / busy * 3600, "tasks"),
        Figure("of a task, besides its commands", median(alone), "s"),
        Figure(f"memory of the worker after {min(FIRST_TASKS, tasks)} tasks", memory[0], "MB"),
        Figure(f"memory of the worker after {tasks} tasks", memory[1], "MB"),
    ]


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
