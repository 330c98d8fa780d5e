"""Registered workers as text and as a document."""

from msgspec.structs import replace

from agent_workbench.core.workers import (
    DispatchPause,
    Fleet,
    Gpu,
    MachineResources,
    ServedModel,
    WorkerRecord,
)
from agent_workbench.subjects.worker.view import fleet_document, fleet_lines

NOW = "2026-01-02T03:05:00.000000Z"
BOX = WorkerRecord(
    "box",
    "2026-01-02T03:00:00.000000Z",
    "2026-01-02T03:04:40.000000Z",
    tags=("lab", "gpu"),
    jobs=1,
    most_jobs=4,
    models=(ServedModel("qwen", "near", 900.0, 42.5), ServedModel("own")),
    resources=MachineResources((2.0, 1.5, 1.0), 8, 6.0, 32.0, 20.5, (Gpu("RTX", 23.99, 20.0),)),
)


def test_a_worker_is_told_with_what_it_has_free() -> None:
    fleet = Fleet((BOX,), NOW, DispatchPause("2026-01-02T03:04:00.000000Z", 12.5, 20.0))
    assert fleet_lines(fleet, fleet.workers) == (
        "waiting for capacity: 12.5 % is the most that a worker has free, "
        "20 % are needed (worker.pause_below_percent), for 1 min",
        "box  online, last heartbeat 20 s ago  1 of 4 jobs, 75 % free  tags lab, gpu",
        "  6 of 8 cores free, load 2 1.5 1, 20.5 of 32 GiB of memory free",
        "  GPU RTX: 20 of 23.99 GiB free",
        "  model qwen (near)  reads 900 tokens/s, writes 42.5 tokens/s",
        "  model own  speed not measured",
    )
    document = fleet_document(fleet, fleet.workers)
    assert isinstance(workers := document["workers"], list)
    assert isinstance(worker := workers[0], dict)
    assert (worker["state"], worker["capacity_percent"], worker["jobs"]) == ("online", 75.0, 1)


def test_names_of_a_forged_row_are_shown_on_one_short_line_without_control_characters() -> None:
    text = "x\n\x1b[2J\u202e" * 500
    gpus = (Gpu(text),)
    forged = replace(BOX, name=text, tags=(text,), models=(ServedModel(text, text),) * 900)
    lines = fleet_lines(Fleet((), NOW), (replace(forged, resources=replace(BOX.resources, gpus=gpus)),))
    assert len(lines) < 12
    assert all(len(line) < 400 and line.isprintable() for line in lines)
