"""Request to the model in a chat: its prompt is sent, and its answer becomes the reply, a call, or is sent back."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import ContextOverflow, ModelError, error_text
from agent_workbench.core.events import (
    ActionRejected,
    ChatReplied,
    ChatShortened,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    PromptPart,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerEnd, AnswerFigures, ModelFacts, ModelRequest, Purpose, StopCause
from agent_workbench.core.state.work import Chat
from agent_workbench.core.text.chat_form import split_chat_answer
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.grammar_choice import chat_grammar
from agent_workbench.engine.answer.model_request import observe_model, record_failure, seed_of, text_sha
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, grammar_ignored, read_step
from agent_workbench.engine.answer.streaming import AnswerLog, cut_of, stream
from agent_workbench.engine.chat.chat_context import chat_context, find_code
from agent_workbench.engine.chat.chat_prompt import chat_parts, lacks_code, most_calls
from agent_workbench.engine.prompt.messages import prompt_sha, to_messages
from agent_workbench.engine.prompt.parts import Part
from agent_workbench.engine.prompt.prompt_size import least_answer_tokens, prompt_size
from agent_workbench.engine.proposals import propose_draft
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS

MOST_CODE_TOKENS = 1_200
"""Estimated tokens of the found code in the first prompt; at most a quarter of the room that is left."""
SUBJECT = "chat"
"""Subject of the requests; a scripted model finds its answers by it."""

MOST_MISSES = 3
NO_CALLS_LEFT = "no more calls can be made for this message; write a line `Answer: …` with what you know"
NO_FORM = "after the thought comes a line `Action: <tool>`, or a line `Answer: …` with the answer"


async def ask_chat(session: SessionContext, chat: Chat) -> None:
    """Ask for the next answer. Errors of the endpoint become events; cancelling frees the server."""
    session.publisher.show_activity("waiting for the model")
    try:
        facts = await observe_model(session, Purpose.CHAT)
        if lacks_code(chat):
            _, _, size = await _sized(session, chat, facts)
            room = facts.context_tokens - size if size and facts.context_tokens else None
            await find_code(session, chat, MOST_CODE_TOKENS if room is None else min(MOST_CODE_TOKENS, room // 4))
        else:
            await _send(session, chat, facts)
    except ContextOverflow as full:
        if full.cut:
            session.publisher.notify(str(full))
        await _shorten(session, chat, str(full))
    except ModelError as error:
        await record_failure(session, Purpose.CHAT, error)


async def _sized(session: SessionContext, chat: Chat, facts: ModelFacts) -> tuple[tuple[Part, ...], Sequence[int], int]:
    """Return the parts of the prompt, their tokens, and those of all of it (0: unknown)."""
    parts = chat_parts(session.state)
    counts = await session.ports.model.count_tokens([part.text for part in parts], Purpose.CHAT)
    return parts, counts, prompt_size(facts, chat.history, to_messages(parts), sum(counts))


async def _send(session: SessionContext, chat: Chat, facts: ModelFacts) -> None:
    parts, counts, size = await _sized(session, chat, facts)
    messages = to_messages(parts)
    context = facts.context_tokens
    room = context - size if context else None
    if room is not None and room < least_answer_tokens(context):
        await _shorten(session, chat, f"the conversation has {size:,} tokens, the context {context:,}")
        return
    wanted = session.settings.model.answer_tokens
    answer_tokens = wanted if room is None else min(wanted, room // 2 if facts.thinks else room)
    held = facts.takes_grammar and facts.endpoint not in session.state.ungrammatical
    calls = chat.specs if chat.calls < most_calls(session.state) else ()
    grammar = await chat_grammar(await chat_context(session), calls) if held else ""
    chosen = session.settings.sampling.of(Purpose.CHAT)
    sampling = chosen.sampling(thinks=facts.thinks)
    seed = seed_of(session.state) if chosen.seed is None else chosen.seed
    measured = tuple(
        PromptPart(part.label, count, text_sha(part.text)) for part, count in zip(parts, counts, strict=True)
    )
    built = PromptBuilt(
        step=chat.answered_step + 1,
        purpose=Purpose.CHAT,
        messages=len(messages),
        tokens=sum(counts),
        sha=prompt_sha(messages),
        parts=measured[chat.prompt_parts :],
        endpoint=facts.endpoint,
        seed=seed,
        grammar_sha=text_sha(grammar) if grammar else "",
        sampling=sampling,
        answer_tokens=answer_tokens,
    )
    await session.record(built, after=session.state.seq)
    request = ModelRequest(
        messages=messages,
        purpose=Purpose.CHAT,
        grammar=grammar,
        answer_tokens=answer_tokens,
        answer_seconds=session.settings.model.answer_seconds,
        subject=SUBJECT,
        sampling=sampling,
        seed=seed,
        prompt_tokens=size,
        answered=sum(isinstance(each.event, ModelAnswered) for each in chat.history),
    )
    await stream(session, request, ChatAnswerLog(session, built.step), guard=AnswerGuard(request))


async def _shorten(session: SessionContext, chat: Chat, why: str) -> None:
    """Leave the older half of the messages out of the prompt; with one message left the session waits for the user."""
    said = [each.seq for each in chat.history if isinstance(each.event, UserSaid) and each.seq > chat.shortened_seq]
    if len(said) < 2:
        what = f"the context is full with the newest message and its results: {why}"
        await session.record(TroubleMet("model", what, "ask for less at once, or raise context_tokens"))
        return
    await session.record(ChatShortened(said[(len(said) + 1) // 2] - 1))
    session.publisher.notify("the context is full: the older half of the conversation is no longer sent")


class ChatAnswerLog(AnswerLog):
    """Records the answer in a chat; a reply that was cut at the limit of its length is a reply all the same."""

    def __init__(self, session: SessionContext, step: int) -> None:
        self._session = session
        self._step = step

    async def ended(self, shown: Streaming, end: AnswerEnd) -> None:
        """Record the answer, whole or cut."""
        answer = ModelAnswered(self._step, shown.text, end.figures, end.endpoint, end.model, shown.thought)
        if end.stop is StopCause.END:
            await self._session.record(answer)
            return
        cause, why = cut_of(end)
        cut = self._interrupted(shown, cause, why)
        await self._session.record(replace(cut, figures=end.figures, endpoint=end.endpoint, model=end.model))
        form = split_chat_answer(shown.text)
        if form.reply is not None and form.reply.strip():
            looped = cause is InterruptCause.REPETITION
            await self._session.record(ChatReplied(self._step, form.reply.strip(), cut=True, looped=looped))
        else:
            await stop_at_misses(self._session, f"it was {why}")

    async def broken(self, shown: Streaming, cause: InterruptCause, why: str, dollars: float) -> None:
        """Record the interrupted answer."""
        broken = self._interrupted(shown, cause, why)
        await self._session.record(replace(broken, figures=AnswerFigures(dollars=dollars)))

    def _interrupted(self, shown: Streaming, cause: InterruptCause, why: str) -> ModelInterrupted:
        return ModelInterrupted(self._step, shown.text, cause, why, reasoning=shown.thought)


class Reply(Struct, frozen=True):
    """The answer to the user, in Markdown."""

    text: str


def read_chat_answer(text: str, chat: Chat, most: int) -> Reply | StepCall | StepFault:
    """Return the reply or the call in an answer, or exactly why it is neither."""
    form = split_chat_answer(text)
    if form.reply is not None:
        return Reply(form.reply.strip()) if form.reply.strip() else StepFault("the answer is empty")
    if not form.call:
        return StepFault(NO_FORM)
    if chat.calls >= most:
        return StepFault(NO_CALLS_LEFT)
    return read_step(text, by_name(chat.specs))


async def take_answer(session: SessionContext, chat: Chat) -> None:
    """Record the newest answer as the reply, as a proposed call, or as one that was not taken."""
    answer = chat.answer
    if answer is None:
        return
    read = read_chat_answer(answer.text, chat, most_calls(session.state))
    if isinstance(read, Reply):
        await session.record(ChatReplied(answer.step, read.text))
        return
    if ignored := grammar_ignored(session.state, answer, read):
        await session.record(ignored)
    if isinstance(read, StepFault):
        await reject_answer(session, answer.step, read.reason)
        return
    try:
        tool = await session.tools.tool(read.tool.name)
        draft = await tool.draft(await chat_context(session), read.arguments, read.text)
        await propose_draft(session, tool, draft)
    except REFUSALS as refusal:
        await reject_answer(session, answer.step, f"{read.tool.name}: {error_text(refusal)}")


async def reject_answer(session: SessionContext, step: int, reason: str) -> None:
    """Record that an answer was not taken; after `MOST_MISSES` of them in a row the session waits for the user."""
    await session.record(ActionRejected(step, reason))
    await stop_at_misses(session, reason)


async def stop_at_misses(session: SessionContext, reason: str) -> None:
    """Record trouble if the newest answers in a row could not be used."""
    if session.state.main is not None and session.state.main.misses >= MOST_MISSES:
        what = f"the model gave no answer that can be used: {reason}"
        await session.record(TroubleMet("model", what, "try again, or ask in other words"))
