"""Intents about the models of the servers in the settings: list, load and unload them, switch the task to one."""

from agent_workbench.core.diagnostics import endpoint_named
from agent_workbench.core.events import (
    ContextFilled,
    EndpointPassed,
    ModelAnswered,
    ModelInterrupted,
    ModelSwitched,
    PromptBuilt,
    RetryAsked,
    SessionForked,
    SessionResumed,
    TroubleMet,
)
from agent_workbench.core.intents import LoadModel, SwitchModel, UnloadModel
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import ENDED, SessionState
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.engine.runtime.session_context import SessionContext

ANSWERING = "the model is answering; wait until it has ended, or stop it first"
_NAME_CHARS = 200


async def handle_model(session: SessionContext, intent: LoadModel | UnloadModel | SwitchModel) -> Outcome:
    """Carry the intent out; raise `ConfigError`, `ModelError`. A load is accepted when the model is in memory."""
    match intent:
        case LoadModel():
            return await _load(session, intent)
        case UnloadModel() if is_answering(session.state) and intent.model == _asked(session.state):
            return Refused(ANSWERING)
        case UnloadModel():
            await session.ports.endpoints.unload(intent.endpoint, intent.model)
            return Accepted(f"{sanitize_line(intent.model, _NAME_CHARS)} is not loaded")
        case SwitchModel():
            return await _switch(session, intent)


def why_not_switch(state: SessionState, settings: Settings, intent: SwitchModel) -> str:
    """Return why the task cannot be switched to a model now, empty if it can."""
    run = state.run
    if isinstance(state.work, Chat):
        return "a chat asks the model of the settings; only a task can be switched to another one"
    if run is None or run.phase in ENDED:
        return "no task is being worked on; --model-name or `model.name` says who is asked from the start"
    if is_answering(state):
        return ANSWERING
    if ModelSwitched(intent.endpoint, intent.model) == (run.switched or ModelSwitched()):
        return "the task asks that model already"
    if not intent.model:
        return ""
    endpoint = endpoint_named(settings, intent.endpoint)
    if endpoint is None or not endpoint.url:
        return f"there is no server of an endpoint {sanitize_line(intent.endpoint, _NAME_CHARS)!r} in the settings"
    if not endpoint.dollars_per_million_tokens.is_free:
        return f"the price of {intent.endpoint} is that of one model: name another endpoint in the settings"
    if intent.model != sanitize_line(intent.model, _NAME_CHARS):
        return "that is not the name of a model"
    return ""


def is_answering(state: SessionState) -> bool:
    """Return True from the record of a prompt of the task to that of its answer, or of what happened to it."""
    kinds = PromptBuilt | ModelAnswered | ModelInterrupted | EndpointPassed | TroubleMet
    kinds |= ContextFilled | SessionResumed | SessionForked
    history = state.run.history if state.run is not None and state.unfinished else ()
    newest = next((each.event for each in reversed(history) if isinstance(each.event, kinds)), None)
    return isinstance(newest, PromptBuilt)


async def _load(session: SessionContext, intent: LoadModel) -> Outcome:
    state = session.state
    session.publisher.hold_activity()
    try:
        loaded = await session.ports.endpoints.load(intent.endpoint, intent.model)
    finally:
        if session.state is state:  # else what was done meanwhile has said what it does
            session.publisher.show_held_activity()
    return Accepted(f"{loaded.name} is {loaded.status}")


async def _switch(session: SessionContext, intent: SwitchModel) -> Outcome:
    if reason := why_not_switch(session.state, session.settings, intent):
        return Refused(reason)
    await session.record(ModelSwitched(intent.endpoint, intent.model))
    trouble, figures = session.state.trouble, session.run.last_figures
    if trouble is not None and trouble.source == "model":
        await session.record(RetryAsked())
    again = f", up to {figures.prompt_tokens:,} tokens" if figures is not None and figures.prompt_tokens else ""
    return Accepted(f"switched; the prompt is read again{again}")


def _asked(state: SessionState) -> str:
    facts = state.model
    return facts.model if facts is not None else ""
