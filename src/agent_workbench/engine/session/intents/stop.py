"""Stops by the user: an answer is cut, a check or a command is ended, and the task pauses."""

from agent_workbench.core.events import AbortAsked, PauseChanged
from agent_workbench.core.intents import StopAction, StopAnswer
from agent_workbench.core.intents.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.state.session_state import ENDED
from agent_workbench.core.state.work import Chat, Planning
from agent_workbench.engine.chat.chat_intents import stop_chat
from agent_workbench.engine.runtime.session_context import SessionContext

TOO_LATE = "it had ended before it was stopped"


async def handle_stop(session: SessionContext, intent: StopAnswer | StopAction) -> Outcome:
    """Pause the task, and end its running action if that is the one to stop. An answer was cut before this.

    An action that began meanwhile goes on, because the user has not seen it. While a proposal waits, nothing runs.
    """
    run, work, main = session.state.run, session.state.work, session.state.main
    if isinstance(main, Chat):
        return await stop_chat(session, main, intent)
    if session.state.waiting is not None:
        return Refused(f"{TOO_LATE}; look at what waits now")
    if isinstance(work, Planning) and work.gate.begun is not None:
        return Refused("the plan is being written, which is brought to its end")
    if isinstance(work, Planning):  # it can be asked for again
        await session.record(AbortAsked("planning stopped by the user"))
        return Accepted()
    if run is None or run.phase in ENDED:
        return Accepted()  # nothing runs any more
    if not run.paused:
        await session.record(PauseChanged(paused=True))
    if isinstance(intent, StopAnswer):
        return Accepted()
    begun = session.run.gate.begun
    if begun is None or begun.id != intent.proposal:
        return Refused(f"{TOO_LATE}; the task pauses before the next request to the model")
    if not begun.stoppable:
        return Refused(f"a {begun.kind} is brought to its end; the task pauses after it")
    session.stoppable.stop(intent.proposal)
    return Accepted()
