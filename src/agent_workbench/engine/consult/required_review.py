"""Review of a whole change before its commit, where a task or the settings ask for one. The gate still decides."""

from agent_workbench.core.consult.requests import ConsultRequest
from agent_workbench.core.errors import ModelError, WorkbenchError, error_text
from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, ConsultStatus
from agent_workbench.core.live import Consulting
from agent_workbench.core.patch.diff_text import render_changes
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.path_kinds import holds_secrets
from agent_workbench.engine.consult.consultation import consult
from agent_workbench.engine.consult.context import consult_context
from agent_workbench.engine.runtime.session_context import SessionContext

REVIEW = "review"


async def review_change(session: SessionContext) -> None:
    """Ask for a review of everything that the task changed; whatever comes of it is recorded."""
    run = session.run
    session.publisher.show_activity("reviewing the change")
    session.publisher.show_consulting(Consulting(REVIEW))
    try:
        changes = [each for each in await (await session.workspace()).changes(run.tree) if _is_shown(each)]
        request = ConsultRequest(
            REVIEW,
            (("context", purpose_of(run.definition)),),
            tuple(each.path for each in changes if each.after is not None) or tuple(each.path for each in changes),
            session=session.state.session,
            diff=render_changes(changes),
            about=run.tree,
        )
        await consult(await consult_context(session, REVIEW), request)
    except WorkbenchError as error:
        # Without a record of the question the commit would never be proposed.
        if session.run.reviewed != run.tree:
            await _record_failure(session, run.tree, error_text(error))
        elif not isinstance(error, ModelError):
            session.publisher.notify(error_text(error))
    finally:
        session.publisher.show_consulting(None)


def _is_shown(change: FileChange) -> bool:
    """Return True for the change of a text that a model may see."""
    sides = (each.data for each in (change.before, change.after) if each is not None)
    return not holds_secrets(change.path) and not any(b"\0" in each for each in sides)


async def _record_failure(session: SessionContext, tree: str, reason: str) -> None:
    number = len(session.state.consultations) + 1
    await session.record(ConsultantAsked(number, REVIEW, REVIEW, "", "", "", about=tree))
    await session.record(ConsultantAnswered(number, ConsultStatus.ERROR, "", reason=reason))


def purpose_of(task: Task) -> str:
    """Return what a change is for, as the context of its review."""
    return "; ".join(filter(None, (" ".join(task.description.split()), " ".join(task.goal.split()))))
