"""Status of a queue, its workers and the shared database, as lines of text and as documents."""

from collections.abc import Iterator, Sequence

from msgspec import to_builtins

from agent_workbench.core.database_report import DatabaseReport
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.strict_json import JsonValue
from agent_workbench.core.workers import (
    DispatchPause,
    Fleet,
    ParkedTask,
    RunningTask,
    ServedModel,
    WorkerJob,
    WorkerRecord,
    WorkerReport,
    WorkerState,
)
from agent_workbench.subjects.inbox.view import age_text

_MOST_NAMED = 10
_REASON_CHARS = 300

_TEXT_CHARS = 60
_MOST_LISTED = 8

_MOST_NAMED_BACKLOG = 20


def worker_lines(report: WorkerReport, now: str) -> tuple[str, ...]:
    """Return the lines of a status; `now` is UTC in ISO 8601."""
    counts = (
        (len(report.queued), "queued"),
        (sum(len(each.jobs) for each in report.workers) + len(report.elsewhere), "at work"),
        (len(report.interrupted), "interrupted"),
        (len(report.parked), "parked"),
        (report.done, "done"),
        (report.failed, "failed"),
        (report.withdrawn, "withdrawn"),
    )
    told = ", ".join(f"{count} {what}" for count, what in counts if count) or "no tasks"
    return (
        f"{report.queue}: {told}",
        *([f"{pause_text(report.pause)}, for {age_text(report.pause.since, now)}"] if report.pause else []),
        *(line for worker in report.workers for line in _worker(worker, now)),
        *(_elsewhere(each) for each in report.elsewhere[:_MOST_NAMED]),
        *([] if report.workers or report.elsewhere else [_nobody(report)]),
        *_named("next", report.queued),
        *_named("interrupted", report.interrupted),
        *(line for parked in report.parked for line in _parked(parked, now)),
        *_refused(report.refused),
        f"today: {counted_text(report.tokens_today, 'token')} in this queue, "
        f"{dollars_text(report.dollars_today) if report.dollars_today else '$0'} in all your sessions",
        *([f"shared database: {report.backlog}"] if report.backlog else []),
    )


def _worker(worker: WorkerState, now: str) -> Iterator[str]:
    due = f", next run {worker.next_run}" if worker.next_run else ""
    idle = "" if worker.jobs or due else ", waiting for tasks"
    yield f"worker {sanitize_line(worker.name)}, for {age_text(worker.since, now)}{due}{idle}"
    yield from (_job(job, now) for job in worker.jobs)


def _nobody(report: WorkerReport) -> str:
    if report.shared:
        return "no worker is running on this machine; `agent worker list` shows those of all machines"
    return "no worker is running"


def _refused(tasks: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for task, reason in tasks[:_MOST_NAMED]:
        yield f"failed before it began: {sanitize_line(task, _TEXT_CHARS)}  {sanitize_line(reason, _REASON_CHARS)}"
    if len(tasks) > _MOST_NAMED:
        yield f"failed before they began: {len(tasks) - _MOST_NAMED} more"


def _elsewhere(task: RunningTask) -> str:
    worker, name = sanitize_line(task.worker, _TEXT_CHARS), sanitize_line(task.task, _TEXT_CHARS)
    return f"worker {worker}: {name}  {sanitize_line(task.session)}".rstrip()


def _job(job: WorkerJob, now: str) -> str:
    state = f"waiting for the {job.waits_for}" if job.waits_for else "running"
    return f"  {sanitize_line(job.task, _TEXT_CHARS)}  {state}, for {age_text(job.since, now)}  {job.session}".rstrip()


def _named(label: str, tasks: tuple[str, ...]) -> Iterator[str]:
    if tasks:
        more = f" and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else ""
        yield f"{label}: {', '.join(sanitize_line(each, _TEXT_CHARS) for each in tasks[:_MOST_NAMED])}{more}"


def _parked(parked: ParkedTask, now: str) -> Iterator[str]:
    age = f" for {age_text(parked.since, now)}" if parked.since else ""
    state = ", decided" if parked.decided else ""
    yield f"parked{age}{state}: {sanitize_line(parked.task, _TEXT_CHARS)}  {sanitize_line(parked.what, _TEXT_CHARS)}"
    if parked.item and not parked.decided:
        yield f"  agent inbox show {parked.item}"


def fleet_lines(fleet: Fleet, workers: Sequence[WorkerRecord]) -> tuple[str, ...]:
    """Return the lines of some workers of a fleet, and of the pause of dispatch if there is one."""
    pause = [f"{pause_text(fleet.pause)}, for {age_text(fleet.pause.since, fleet.now)}"] if fleet.pause else []
    return (*pause, *(line for each in workers for line in _registered_worker(each, fleet.now)))


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


def _registered_worker(worker: WorkerRecord, now: str) -> Iterator[str]:
    found, presence = worker.resources, worker.presence(now)
    tags = (
        f"  tags {', '.join(sanitize_line(each, _TEXT_CHARS) for each in worker.tags[:_MOST_LISTED])}"
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
    for gpu in found.gpus[:_MOST_LISTED]:
        name = sanitize_line(gpu.name, _TEXT_CHARS)
        yield f"  GPU {name}: {gpu.vram_free_gb:g} of {gpu.vram_total_gb:g} GiB free"
    for model in worker.models[:_MOST_LISTED]:
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
