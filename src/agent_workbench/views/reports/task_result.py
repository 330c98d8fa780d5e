"""Result of a task, from the state of its session."""

from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import PlaybookFinished, TaskFinished
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import COMMIT
from agent_workbench.core.queue.result import ENDS, CheckOutcome, PlaybookOutcome, TaskResult
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.core.state.steps import newest_steps

MOST_PLAYBOOKS, MOST_HOSTS = 20, 50
"""Runs of playbooks in a result, and hosts of each."""


def task_result(state: SessionState, task: TaskId) -> TaskResult | None:
    """Return the result of the newest run of a task, None if it has not ended; later events do not change it."""
    run = state.run_of(task)
    if run is None or run.status not in ENDS:
        return None
    ends = [each for each in run.history if isinstance(each.event, TaskFinished)]
    if not ends:
        return None
    end = ends[-1]
    return TaskResult(
        task=task,
        status=run.status,
        reason=run.reason,
        exit_code=ExitCode.DONE if run.status is TaskStatus.DONE else ExitCode.FAILED,
        origin=run.definition.origin,
        source=run.definition.source,
        session=state.session,
        journal_head=f"{state.session}:{end.seq}:{end.hash}",
        branch=run.workspace.branch if run.commit else "",
        commit=run.commit or "",
        checks=tuple(CheckOutcome(each.command, each.exit_code, each.seconds) for each in run.results or ()),
        files=_committed_files(run),
        playbooks=_playbooks(run),
        tokens=run.tokens,
        dollars=run.dollars,
        started=run.history[0].time,
        finished=end.time,
    )


def _playbooks(run: TaskRun) -> tuple[PlaybookOutcome, ...]:
    """Return the runs of playbooks, the last ones of very many."""
    ended = [each.event for each in run.history if isinstance(each.event, PlaybookFinished)]
    return tuple(
        PlaybookOutcome(
            each.request.playbook,
            each.request.check,
            each.failed,
            tuple(host.text for host in each.hosts[:MOST_HOSTS]),
            each.lint.text if each.lint is not None else "",
        )
        for each in ended[-MOST_PLAYBOOKS:]
    )


def _committed_files(run: TaskRun) -> tuple[str, ...]:
    proposed = (step.proposal for step in newest_steps(run.history))
    return next((each.paths for each in proposed if each.tool == COMMIT), ()) if run.commit else ()
