"""Registered workers and the shared database as lines of text, and as documents for programs."""

from collections.abc import Iterator, Sequence

from msgspec import to_builtins

from agent_workbench.core.database_report import DatabaseReport
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.core.workers import DispatchPause, Fleet, ServedModel, WorkerRecord
from agent_workbench.subjects.inbox.view import age_text

_TEXT_CHARS = 60
_MOST_NAMED = 8

_MOST_NAMED_BACKLOG = 20


def fleet_lines(fleet: Fleet, workers: Sequence[WorkerRecord]) -> tuple[str, ...]:
    """Return the lines of some workers of a fleet, and of the pause of dispatch if there is one."""
    pause = [f"{pause_text(fleet.pause)}, for {age_text(fleet.pause.since, fleet.now)}"] if fleet.pause else []
    return (*pause, *(line for each in workers for line in _worker(each, fleet.now)))


def fleet_document(fleet: Fleet, workers: Sequence[WorkerRecord]) -> dict[str, JsonValue]:
    """Return some workers of a fleet as a document: each as it is registered, with its state and its capacity."""
    return {
        "now": fleet.now,
        "pause": dict(to_builtins(fleet.pause)) if fleet.pause is not None else None,
        "workers": [
            {
                **to_builtins(each),
                "state": each.presence(fleet.now).value,
                "capacity_percent": round(100 * each.capacity, 1),
            }
            for each in workers
        ],
    }


def pause_text(pause: DispatchPause) -> str:
    """Return a pause in words."""
    return (
        f"waiting for capacity: {pause.percent:g} % is the most that a worker has free, "
        f"{pause.least:g} % are needed (worker.pause_below_percent)"
    )


def _worker(worker: WorkerRecord, now: str) -> Iterator[str]:
    found, presence = worker.resources, worker.presence(now)
    tags = (
        f"  tags {', '.join(sanitize_line(each, _TEXT_CHARS) for each in worker.tags[:_MOST_NAMED])}"
        if worker.tags
        else ""
    )
    beat = f", last heartbeat {age_text(worker.last_beat, now)} ago" if worker.last_beat else ""
    yield (
        f"{sanitize_line(worker.name, _TEXT_CHARS)}  {presence}{beat}  "
        f"{worker.jobs} of {worker.most_jobs} jobs, {100 * worker.capacity:.0f} % free{tags}"
    )
    load = " ".join(f"{each:g}" for each in found.load)
    yield (
        f"  {found.cores_available:g} of {found.cores} cores free, load {load}, "
        f"{found.memory_available_gb:g} of {found.memory_total_gb:g} GiB of memory free"
    )
    for gpu in found.gpus[:_MOST_NAMED]:
        name = sanitize_line(gpu.name, _TEXT_CHARS)
        yield f"  GPU {name}: {gpu.vram_free_gb:g} of {gpu.vram_total_gb:g} GiB free"
    for model in worker.models[:_MOST_NAMED]:
        yield f"  model {_model(model)}"


def _model(model: ServedModel) -> str:
    named = f" ({sanitize_line(model.endpoint, _TEXT_CHARS)})" if model.endpoint else ""
    speeds = ((model.reading, "reads"), (model.writing, "writes"))
    told = ", ".join(f"{what} {speed:g} tokens/s" for speed, what in speeds if speed)
    return f"{sanitize_line(model.name, _TEXT_CHARS)}{named}  {told or 'speed not measured'}"


def database_lines(report: DatabaseReport) -> tuple[str, ...]:
    """Return the lines of a report: a label, and what is there."""
    return tuple(f"{label:<16}{text}".rstrip() for label, text in _labelled(report))


def _labelled(report: DatabaseReport) -> Iterator[tuple[str, str]]:
    answers = f"PostgreSQL {sanitize_line(report.server)}, answers in {report.milliseconds:.1f} ms"
    yield "database", f"{report.place}: {answers if report.reachable else 'does not answer'}"
    if report.reachable:
        yield "clock", f"{report.clock_seconds:+.3f} s against the server's"
    if report.schema:
        yield "schema", ", ".join(report.schema)
        yield "queue", counted_text(report.tasks, "task")
    yield "copies", report.backlog.text or "everything here is copied"
    yield "git remote", report.remote
    alone = "" if report.has_signers else " (not there: only this machine's own signatures count)"
    yield "allowed signers", f"{report.allowed_signers}{alone}"
    if report.worker_line:
        yield "as a worker", report.worker_line
        yield "as a person", report.person_line
    for task, why in report.uncounted[:_MOST_NAMED_BACKLOG]:
        yield "does not count", f"task {sanitize_line(task)}: {sanitize_line(why)}"
    if len(report.uncounted) > _MOST_NAMED_BACKLOG:
        yield "", f"and {len(report.uncounted) - _MOST_NAMED_BACKLOG} more tasks"
    for problem in report.problems:
        yield "problem", sanitize_line(problem)
