"""Status of a queue as text."""

from agent_workbench.core.workers import WorkerReport
from agent_workbench.subjects.worker.view import worker_lines

NOW = "2026-01-02T03:05:00.000000Z"


def test_what_failed_before_it_began_is_said_with_its_reason() -> None:
    refused = tuple((f"t-{number}", "it does not count:\nits key is unknown") for number in range(12))
    lines = worker_lines(WorkerReport("the queue", failed=13, refused=refused), NOW)
    told = [line for line in lines if line.startswith("failed before")]
    assert (lines[0], len(told)) == ("the queue: 13 failed", 11)
    assert told[0] == "failed before it began: t-0  it does not count: its key is unknown"
    assert told[-1] == "failed before they began: 2 more"


def test_workers_of_other_machines_are_not_denied() -> None:
    assert "no worker is running" in worker_lines(WorkerReport("the queue"), NOW)
    shared = worker_lines(WorkerReport("the queue", shared=True), NOW)
    assert "no worker is running on this machine; `agent worker list` shows those of all machines" in shared
