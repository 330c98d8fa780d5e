"""Report of a full context: the steps that a summary must cover, or an error if no summary can free more."""

from agent_workbench.core.events import (
    Author,
    ChunkPinned,
    ContextFilled,
    ScratchpadChanged,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.engine.prompt.step_history import (
    answers_of,
    answers_since_compaction,
    is_answer,
    steps_since_compaction,
)
from agent_workbench.engine.runtime.session_context import SessionContext

NEWS = (UserSaid, ChunkPinned, ScratchpadChanged)


async def report_full_context(
    session: SessionContext,
    purpose: Purpose,
    size: int,
    context_tokens: int,
    reserve: int,
    by: Author = Author.WORKBENCH,
) -> None:
    """Record that a prompt of `size` tokens needs a compaction, or that no compaction can help.

    `reserve` are the tokens that a request for a summary adds. If they do not fit either, the summary covers only the
    steps up to the last answer, which the server has already read.
    """
    run = session.run
    if by is Author.WORKBENCH and is_exhausted(run, context_tokens):
        await session.record(_too_small(run, size, context_tokens))
        return
    answers = answers_since_compaction(run.history)
    fits = not context_tokens or context_tokens - size >= reserve
    through_seq = -1 if fits or not answers else answers[-1].seq
    await session.record(ContextFilled(run.answered_step + 1, purpose, size, context_tokens, through_seq, by))


def is_exhausted(run: TaskRun, context_tokens: int) -> bool:
    """Return True if the last compaction freed all it could, and nothing was added since."""
    if not run.compactions:
        return False
    filled = [each.event.context_tokens for each in run.history if isinstance(each.event, ContextFilled)]
    if filled and context_tokens < filled[-1]:
        return False
    since = steps_since_compaction(run.history)
    return not any(is_answer(each.event) or isinstance(each.event, NEWS) for each in since)


def _too_small(run: TaskRun, size: int, context_tokens: int) -> TroubleMet:
    begun = bool(answers_of(run.history))
    least = "with all older steps in a summary its next" if begun else "without the code that was found its first"
    return TroubleMet(
        "model",
        f"the context of {context_tokens or 'unknown'} tokens is too small for {run.task}: "
        f"{least} prompt still has {size or 'too many'}",
        "serve the model with a larger context (model.context_tokens), unpin code, allow fewer tools or skills, "
        "or abort and split the task",
    )
