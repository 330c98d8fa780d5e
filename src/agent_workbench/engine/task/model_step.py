"""Step of the model: its prompt is sent if the context and the budget have room for the answer."""

from contextlib import suppress

from agent_workbench.core.errors import ContextOverflow, ModelError
from agent_workbench.core.events import Author, ContextFilled
from agent_workbench.core.model import Purpose
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.engine.answer.model_request import observe_model, record_failure, send
from agent_workbench.engine.prompt.prompt_size import PromptDraft, draft_prompt, least_answer_tokens
from agent_workbench.engine.prompt.scratchpad import too_long
from agent_workbench.engine.recorder import Overtaken
from agent_workbench.engine.runtime.budget import tokens_left
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.summary_request import is_exhausted, report_full_context
from agent_workbench.engine.task.recovery import roll_back

LEAST_ANSWER_TOKENS = 64
REFLEXION_TOKENS = 400


async def ask(session: SessionContext, purpose: Purpose) -> None:
    """Ask the model for a step or a reflexion. Errors of the endpoint become events; cancelling frees the server."""
    session.publisher.show_activity("waiting for the model")
    try:
        asked = False
        while not asked and not session.run.paused:
            draft = await draft_prompt(session, await observe_model(session, purpose), purpose)
            with suppress(Overtaken):
                await _ask(session, draft)
                asked = True
    except ContextOverflow as full:
        await _overflowed(session, purpose, full)
    except ModelError as error:
        await record_failure(session, purpose, error)


async def _ask(session: SessionContext, draft: PromptDraft) -> None:
    """Send the prompt if there is room for the answer; else start a compaction, or roll the task back."""
    run = session.run
    if size := await too_long(session, draft.purpose):
        step, context = run.answered_step + 1, draft.facts.context_tokens
        await session.record(ContextFilled(step, draft.purpose, size, context, notes=True))
        return
    room = _room(run, draft)
    if room is not None and room < least_answer_tokens(draft.context_tokens):
        await report_full_context(session, draft.purpose, draft.size, draft.context_tokens, draft.reserve)
        return
    if run.compaction_asked:
        size, context = draft.size or draft.tokens, draft.facts.context_tokens
        await report_full_context(session, draft.purpose, size, context, draft.reserve, Author.USER)
        return
    left = tokens_left(run, draft.likely_size)
    if left is not None and left < LEAST_ANSWER_TOKENS:
        budget = run.definition.budget.tokens
        needs = f"the next prompt has {'' if draft.facts.counts_tokens else 'about '}{draft.likely_size} tokens"
        await roll_back(session, f"{run.tokens} tokens were used of the {budget} in the task's budget, and {needs}")
        return
    wanted = REFLEXION_TOKENS if draft.purpose is Purpose.REFLEXION else session.settings.model.answer_tokens
    # A model that thinks first takes as much again for its thoughts.
    most = None if room is None else room // 2 if draft.facts.thinks else room
    await send(session, draft, min(each for each in (wanted, most, left) if each is not None))


def _room(run: TaskRun, draft: PromptDraft) -> int | None:
    """Return the tokens that the answer may have, so that a summary can still be requested after it.

    If there is nothing left to summarize, the answer gets the room of the summary request too.
    """
    if draft.room is None:
        return None
    reserved = draft.room - draft.reserve
    tight = reserved < least_answer_tokens(draft.context_tokens)
    return draft.room if tight and is_exhausted(run, draft.context_tokens) else reserved


async def _overflowed(session: SessionContext, purpose: Purpose, full: ContextOverflow) -> None:
    """Start a compaction after the server refused a prompt as too long; its own figures of the context are used."""
    sent, facts = session.state.prompt, session.state.model_for(purpose)
    size = full.prompt_tokens or (sent.tokens if sent else 0)
    told = full.context_tokens or (facts.context_tokens if facts else 0)
    context = min(told, size) if told and size else told or size
    if full.cut:
        session.publisher.notify(str(full))
    await report_full_context(session, purpose, size, context, context)
