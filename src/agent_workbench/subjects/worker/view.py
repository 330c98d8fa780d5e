"""Status of a queue and its workers as lines of text."""

from collections.abc import Iterator

from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.workers import ParkedTask, RunningTask, WorkerJob, WorkerReport, WorkerState
from agent_workbench.subjects.inbox.view import age_text
from agent_workbench.subjects.worker.fleet_view import pause_text

_MOST_NAMED = 10
_TEXT_CHARS = 60
_REASON_CHARS = 300


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
