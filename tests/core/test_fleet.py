"""Presence and capacity of registered workers, and the pause of their dispatch."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.workers import DispatchPause, Fleet, MachineResources, WorkerPresence, WorkerRecord

BEAT = "2026-01-02T03:04:00.000000Z"
AT_90 = "2026-01-02T03:05:30.000000Z"
AFTER_90 = "2026-01-02T03:05:30.000001Z"


def loaded(name: str, available: float, **fields: object) -> WorkerRecord:
    """A worker with ten cores of which some are available."""
    record = WorkerRecord(name, BEAT, BEAT, resources=MachineResources(cores=10, cores_available=available))
    return replace(record, **fields)


def test_a_worker_is_offline_after_ninety_seconds_without_a_heartbeat() -> None:
    worker = WorkerRecord("a", BEAT, BEAT)
    assert worker.presence(AT_90) is WorkerPresence.ONLINE
    assert worker.presence(AFTER_90) is WorkerPresence.OFFLINE
    assert replace(worker, draining=True).presence(AT_90) is WorkerPresence.DRAINING
    assert replace(worker, draining=True).presence(AFTER_90) is WorkerPresence.OFFLINE
    assert replace(worker, ended=True).presence(BEAT) is WorkerPresence.OFFLINE
    assert WorkerRecord("a", BEAT, "9999-01-01T00:00:00Z").presence(BEAT) is WorkerPresence.OFFLINE
    assert WorkerRecord("a", BEAT, "no time").presence(BEAT) is WorkerPresence.OFFLINE


@pytest.mark.parametrize(
    ("worker", "capacity"),
    [
        (loaded("a", 4.0), 0.4),
        (loaded("a", 4.0, jobs=1, most_jobs=8), 0.4),
        (loaded("a", 4.0, jobs=8, most_jobs=8), 0.0),
        (loaded("a", 12.0), 1.0),
        (WorkerRecord("a"), 1.0),
    ],
)
def test_the_capacity_is_the_share_of_free_cores_while_a_job_is_free(worker: WorkerRecord, capacity: float) -> None:
    assert worker.capacity == capacity


def test_dispatch_pauses_only_below_the_percentage_of_every_worker() -> None:
    assert Fleet((loaded("a", 1.9), loaded("b", 2.0)), BEAT).dispatch_pause(20) is None
    assert Fleet((loaded("a", 1.9), loaded("b", 1.0)), BEAT).dispatch_pause(20) == DispatchPause(BEAT, 19.0, 20)
    assert Fleet((loaded("a", 0.0),), BEAT).dispatch_pause(0) is None


def test_workers_that_take_nothing_new_have_no_capacity() -> None:
    fleet = Fleet((loaded("a", 10, draining=True), loaded("b", 10, ended=True)), BEAT)
    assert fleet.dispatch_pause(20) == DispatchPause(BEAT, 0.0, 20)
    assert Fleet((loaded("a", 10),), AFTER_90).dispatch_pause(20) is not None


def test_a_pause_keeps_its_beginning_and_ends_with_capacity() -> None:
    first = DispatchPause(BEAT, 5.0, 20)
    fleet = Fleet((loaded("a", 1.0, last_beat=AT_90),), AT_90, first)
    assert fleet.dispatch_pause(20) == DispatchPause(BEAT, 10.0, 20)
    assert fleet.with_worker(loaded("a", 9.0)).dispatch_pause(20) is None
