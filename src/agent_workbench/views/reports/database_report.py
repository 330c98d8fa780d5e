"""State of the shared database as lines of text."""

from collections.abc import Iterator

from agent_workbench.core.database_report import DatabaseReport
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

_MOST_NAMED = 20


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
    for task, why in report.uncounted[:_MOST_NAMED]:
        yield "does not count", f"task {sanitize_line(task)}: {sanitize_line(why)}"
    if len(report.uncounted) > _MOST_NAMED:
        yield "", f"and {len(report.uncounted) - _MOST_NAMED} more tasks"
    for problem in report.problems:
        yield "problem", sanitize_line(problem)
