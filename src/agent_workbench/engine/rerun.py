"""Re-runs of a session: exact ones, from the journal alone, and those that ask a live model every prompt again."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from difflib import unified_diff
from itertools import zip_longest

from msgspec import Struct

from agent_workbench.core.errors import ModelUnavailable, WorkspaceError
from agent_workbench.core.events import (
    ActionRejected,
    ChatReplied,
    ConsultantAnswered,
    ConsultantAsked,
    ContextCompacted,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    PromptPart,
    Recorded,
    ReflexionNoted,
)
from agent_workbench.core.fold import fold
from agent_workbench.core.history.replay_marks import PromptDifference, ReproducedPrompt
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerEnd, AnswerFigures, Message, ModelRequest, Purpose, StopCause, TextDelta
from agent_workbench.core.ports.model import Model
from agent_workbench.core.proposal_kinds import SummaryProposal
from agent_workbench.core.proposals import COMPACT, OURS, Proposal
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import steps_of
from agent_workbench.core.state.work import Chat
from agent_workbench.core.tools.spec import by_name
from agent_workbench.engine.answer.answer_guard import AnswerGuard
from agent_workbench.engine.answer.grammar_choice import fixed_grammar, possible_steps_grammar
from agent_workbench.engine.answer.model_request import guard_of, text_sha
from agent_workbench.engine.answer.step_protocol import StepCall, StepFault, read_step
from agent_workbench.engine.answer.streaming import NEVER_WRITTEN
from agent_workbench.engine.chat.chat_prompt import chat_parts, most_calls
from agent_workbench.engine.chat.chat_request import Reply, read_chat_answer
from agent_workbench.engine.consult_attempts import sent_messages
from agent_workbench.engine.flow import Ask, ReadAnswer, next_move
from agent_workbench.engine.prompt.messages import build_parts, prompt_sha, to_messages
from agent_workbench.engine.prompt.parts import Part
from agent_workbench.engine.proposals import REFLEXION_PREFIX
from agent_workbench.engine.runtime.tool_context import TaskBounds, TaskFiles
from agent_workbench.engine.summary_request import parse_summary

RecordedFiles = Callable[[str], Awaitable[TaskFiles]]
"""Returns the files of a recorded tree; raises `WorkspaceError` if it is gone."""

SHOWN_LINES = 12
SHOWN_CHARS = 160
SHOWN_HASH = 12
Outcome = Proposal | ActionRejected | ReflexionNoted | ContextCompacted | ChatReplied
"""Outcome of an answer in a journal: its proposal, or the event in place of one."""

CUT = "… cut at the token limit"


class RecordedPrompt(Struct, frozen=True):
    """Prompt of a journal with the state `before` it and the events `after` it, until the next prompt."""

    number: int
    seq: int
    before: SessionState
    built: PromptBuilt
    after: tuple[Recorded, ...]

    @property
    def answer(self) -> ModelAnswered | ModelInterrupted | None:
        """The recorded answer of the model, None if there is none."""
        said = (each.event for each in self.after if isinstance(each.event, ModelAnswered | ModelInterrupted))
        return next(said, None)


def prompts_of(events: Iterable[Recorded]) -> Iterator[RecordedPrompt]:
    """Yield the prompts of a journal in order, numbered from 1."""
    state = SessionState()
    number, found, after = 0, None, list[Recorded]()
    for recorded in events:
        if isinstance(recorded.event, PromptBuilt):
            if found is not None:
                yield _recorded_prompt(number, *found, after)
            number, found, after = number + 1, (recorded, recorded.event, state), []
        else:
            after.append(recorded)
        state = fold(state, recorded)
    if found is not None:
        yield _recorded_prompt(number, *found, after)


def _recorded_prompt(
    number: int, recorded: Recorded, built: PromptBuilt, before: SessionState, after: list[Recorded]
) -> RecordedPrompt:
    return RecordedPrompt(number, recorded.seq, before, built, tuple(after))


def messages_of(asked: RecordedPrompt) -> tuple[Message, ...]:
    """Return the messages of a prompt, rebuilt from the journal."""
    return to_messages(_parts(asked))


def _parts(asked: RecordedPrompt) -> tuple[Part, ...]:
    if asked.built.purpose is Purpose.CHAT:
        return chat_parts(asked.before)
    return build_parts(asked.before, asked.built.purpose)


def rerun(events: Iterable[Recorded]) -> Iterator[ReproducedPrompt]:
    """Yield each prompt of a journal with its differences after a rebuild. Uses no model, no git and no file.

    The questions to consultants follow those of the steps.

    The same: the engine asks there and for that, the prompt is the recorded one to the byte, and the recorded answer is
    read as what was recorded of it.
    """
    recorded, number = tuple(events), 0
    for asked in prompts_of(recorded):
        number = asked.number
        yield ReproducedPrompt(
            asked.number,
            asked.seq,
            asked.built,
            _position_difference(asked) or _prompt_difference(asked) or _answer_difference(asked),
        )
    yield from rerun_consultations(recorded, number + 1)


def _position_difference(asked: RecordedPrompt) -> PromptDifference | None:
    move = next_move(asked.before)
    if isinstance(move, Ask) and move.purpose is asked.built.purpose:
        return None
    return PromptDifference(f"the engine would not ask the {asked.built.purpose} here, but do this: {move}"[:300])


def _prompt_difference(asked: RecordedPrompt) -> PromptDifference | None:
    built = asked.built
    parts = _parts(asked)
    if prompt_sha(to_messages(parts)) == built.sha:
        return None
    main = asked.before.main
    known = main.known_parts(built.purpose) if main is not None else 0
    fresh = parts[known:]
    again = tuple(PromptPart(part.label, 0, text_sha(part.text)) for part in fresh)
    for position, (then, now) in enumerate(zip_longest(built.parts, again)):
        if then is None or now is None or then.label != now.label or (then.sha and then.sha != now.sha):
            label = now.label if now is not None else then.label if then is not None else ""
            text = fresh[position].text if now is not None else ""
            return PromptDifference("the prompt is another one", label, _part_diff(built.parts, again, text))
    return PromptDifference("the prompt is another one, in a part that an earlier prompt had already")


def _part_diff(then: tuple[PromptPart, ...], now: tuple[PromptPart, ...], text: str) -> str:
    """Return the outlines of both prompts, and the beginning of the part that differs."""
    hashed = any(part.sha for part in then)  # journals from before there were hashes are compared by names

    def outline(parts: tuple[PromptPart, ...]) -> list[str]:
        return [f"{part.label} {part.sha[:SHOWN_HASH] if hashed else ''}".rstrip() for part in parts]

    shown = [f"  | {line}" for line in text.splitlines()[:SHOWN_LINES]]
    return "\n".join([short_diff(outline(then), outline(now)), *shown])


def _answer_difference(asked: RecordedPrompt) -> PromptDifference | None:
    """Return the difference between the parsed answer and the record, None if there is none or no answer."""
    answer, outcome = asked.answer, _outcome(asked)
    if not isinstance(answer, ModelAnswered) or outcome is None:
        return _outcome_difference(answer, outcome)
    move = next_move(_state_with(asked, answer))
    if not isinstance(move, ReadAnswer):
        return PromptDifference(f"the engine would not read the answer, but do this: {move}"[:300])
    match asked.built.purpose:
        case Purpose.EXECUTOR:
            return _step_read(asked, answer, outcome)
        case Purpose.REFLEXION:
            noted = answer.text.strip().removeprefix(REFLEXION_PREFIX).strip()
            same = isinstance(outcome, ReflexionNoted) and outcome.text == noted
            return None if same else PromptDifference("the reflexion is read as another one", "answer")
        case Purpose.SUMMARY:
            return _summary_difference(parse_summary(answer.text), outcome)
        case Purpose.CHAT:
            return _reply_read(asked, answer, outcome)
        case Purpose.PLANNER | Purpose.CONSULTANT:
            return None


def _summary_difference(summary: str, outcome: Outcome) -> PromptDifference | None:
    match outcome:
        case SummaryProposal():
            same = outcome.tool == COMPACT and (outcome.text == summary or (not summary and outcome.fallback))
        case ActionRejected():
            same = not summary
        case _:
            same = False
    return (
        None
        if same
        else PromptDifference(f"the summary is read as another one, {_said(outcome)} was recorded", "answer")
    )


def _outcome_difference(
    answer: ModelAnswered | ModelInterrupted | None, outcome: Outcome | None
) -> PromptDifference | None:
    cut = isinstance(answer, ModelInterrupted)
    if cut and isinstance(outcome, Proposal) and outcome.tool not in OURS:
        return PromptDifference("an answer without its end was taken for a step", "answer")
    return None


def _outcome(asked: RecordedPrompt) -> Outcome | None:
    """Return what was recorded of the answer."""
    proposed = {step.seq: step.first for step in steps_of(asked.after)}
    events = iter([proposed.get(each.seq, each.event) for each in asked.after])
    for event in events:
        if isinstance(event, ModelAnswered | ModelInterrupted):
            break
    return next((event for event in events if isinstance(event, Outcome)), None)


def _state_with(asked: RecordedPrompt, answer: ModelAnswered) -> SessionState:
    """Return the state in which the answer was just recorded."""
    state = asked.before
    for recorded in (Recorded(asked.seq, "", asked.built), *asked.after):
        state = fold(state, recorded)
        if recorded.event is answer:
            break
    return state


def _reply_read(asked: RecordedPrompt, answer: ModelAnswered, outcome: Outcome) -> PromptDifference | None:
    state = _state_with(asked, answer)
    chat = state.main if isinstance(state.main, Chat) else Chat()
    read = read_chat_answer(answer.text, chat, most_calls(state))
    if not isinstance(read, Reply):
        return _call_read(read, outcome)
    same = isinstance(outcome, ChatReplied) and outcome.text == read.text
    return (
        None if same else PromptDifference(f"the reply is read as another one, {_said(outcome)} was recorded", "answer")
    )


def _step_read(asked: RecordedPrompt, answer: ModelAnswered, outcome: Outcome) -> PromptDifference | None:
    run = asked.before.run
    if isinstance(outcome, ActionRejected) and outcome.reason == NEVER_WRITTEN:
        return None
    return _call_read(read_step(answer.text, by_name(run.specs if run is not None else ())), outcome)


def _call_read(call: StepCall | StepFault, outcome: Outcome) -> PromptDifference | None:
    if isinstance(call, StepFault):
        if isinstance(outcome, ActionRejected) and outcome.reason == call.reason:
            return None
        return PromptDifference(
            f"the answer is read as no step ({call.reason}), {_said(outcome)} was recorded", "answer"
        )
    if isinstance(outcome, ActionRejected):
        # What a tool has against its arguments is known from the files; that it was this tool is known from the text.
        refused = outcome.reason.startswith(f"{call.tool.name}: ")
        return (
            None if refused else PromptDifference(f"{call.tool.name} is read, {_said(outcome)} was recorded", "answer")
        )
    if not isinstance(outcome, Proposal) or outcome.tool != call.tool.name:
        return PromptDifference(f"{call.tool.name} is read, {_said(outcome)} was recorded", "answer")
    # A proposal holds the call's text, or the one argument that a user can edit.
    told, said = outcome.text, (call.text, *(str(value).strip() for value in call.arguments.values.values()))
    if told in said:
        return None
    diff = short_diff(told.splitlines(), call.text.splitlines())
    return PromptDifference(f"the text of {call.tool.name} is another one", "answer", diff)


def _said(outcome: Outcome) -> str:
    match outcome:
        case ActionRejected():
            return f"“{outcome.reason[:200]}”"
        case ReflexionNoted():
            return "a reflexion"
        case ContextCompacted():
            return "a summary"
        case ChatReplied():
            return "a reply"
        case _:
            return outcome.tool


def short_diff(then: list[str], now: list[str]) -> str:
    """Return a unified diff of two lists of lines without its head, cut where it gets long."""
    lines = list(unified_diff(then, now, "recorded", "again", lineterm="", n=1))[2:]
    cut = [f"… {len(lines) - SHOWN_LINES} lines more"] if len(lines) > SHOWN_LINES else []
    shown = [line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…" for line in lines[:SHOWN_LINES]]
    return "\n".join([*shown, *cut])


def rerun_consultations(events: Iterable[Recorded], first: int) -> Iterator[ReproducedPrompt]:
    """Yield the question of each recorded attempt, numbered from `first`."""
    asked: dict[int, tuple[int, ConsultantAsked]] = {}
    number = first
    for recorded in events:
        event = recorded.event
        if isinstance(event, ConsultantAsked):
            asked[event.number] = recorded.seq, event
        elif isinstance(event, ConsultantAnswered) and event.number in asked:
            seq, question = asked[event.number]
            for attempt, messages in zip(event.attempts, sent_messages(question, event.attempts), strict=True):
                built = PromptBuilt(
                    event.number,
                    Purpose.CONSULTANT,
                    len(messages),
                    attempt.figures.prompt_tokens,
                    attempt.sha,
                    endpoint=attempt.endpoint,
                    seed=attempt.seed,
                    answer_tokens=question.answer_tokens,
                )
                same = not attempt.sha or prompt_sha(messages) == attempt.sha
                difference = None if same else PromptDifference("the question is another one", question.skill)
                yield ReproducedPrompt(number, seq, built, difference, compared=bool(attempt.sha))
                number += 1


async def rerun_with_model(
    events: Iterable[Recorded], model: Model, files_of: RecordedFiles, settings: Settings
) -> AsyncGenerator[ReproducedPrompt]:
    """Yield each prompt compared with the model's present answer; raise `ModelError`.

    It is asked with the same messages, seed, sampling and grammar, in the same order; the grammar is made again from
    the journal and the recorded files. A prompt without a whole answer in the journal is not asked.
    """
    for asked in prompts_of(events):
        then = asked.answer
        if then is None or (isinstance(then, ModelInterrupted) and then.cause is not InterruptCause.LENGTH):
            remark = "no whole answer is recorded"
            yield ReproducedPrompt(asked.number, asked.seq, asked.built, compared=False, remark=remark)
            continue
        grammar, remark = await _grammar(asked, files_of, settings)
        request = _request(asked, grammar, settings)
        now, figures = await _answer(model, request, _guard(asked, request))
        difference = _difference(_text_of(then), now)
        if difference is not None and figures.cached_tokens != then.figures.cached_tokens:
            remark = "; ".join(filter(None, (remark, _cache_remark(then.figures, figures))))
        yield ReproducedPrompt(asked.number, asked.seq, asked.built, difference, remark=remark)


def _request(asked: RecordedPrompt, grammar: str, settings: Settings) -> ModelRequest:
    built, run, config = asked.built, asked.before.run, asked.before.config
    most = built.answer_tokens or (config.answer_tokens if config is not None else settings.model.answer_tokens)
    return ModelRequest(
        messages=messages_of(asked),
        purpose=built.purpose,
        grammar=grammar,
        answer_tokens=most,
        answer_seconds=config.answer_seconds if config is not None else settings.model.answer_seconds,
        subject=run.task if run is not None else "",
        sampling=built.sampling,
        seed=built.seed,
        prompt_tokens=built.tokens,
    )


async def _grammar(asked: RecordedPrompt, files_of: RecordedFiles, settings: Settings) -> tuple[str, str]:
    """Return the grammar of the recorded answer, and a remark if it cannot be rebuilt exactly."""
    recorded, run = asked.built.grammar_sha, asked.before.run
    if not recorded or run is None:
        return "", ""
    if asked.built.purpose is not Purpose.EXECUTOR:
        made = fixed_grammar(asked.built.purpose)
    else:
        try:
            files = await files_of(run.tree)
            made = await possible_steps_grammar(TaskBounds(settings, run.definition, asked.before), files)
        except WorkspaceError as error:
            return "", f"asked without a grammar, it could not be made again: {error}"
    return made, "" if text_sha(made) == recorded else "the grammar made again is another one than the recorded"


def _guard(asked: RecordedPrompt, request: ModelRequest) -> AnswerGuard | None:
    """Return the guard that the recorded answer had."""
    run = asked.before.run
    return guard_of(run, request) if run is not None else AnswerGuard(request)


async def _answer(model: Model, request: ModelRequest, guard: AnswerGuard | None) -> tuple[str, AnswerFigures]:
    said: list[str] = []
    async with aclosing(model.answer(request)) as items:
        async for item in items:
            if isinstance(item, TextDelta):
                said.append(item.text)
                stop = guard.stop(item, Streaming(text="".join(said))) if guard is not None else None
                if stop is not None:
                    return stop.text + (f"\n… {stop.what}" if stop.what else ""), AnswerFigures()
            if isinstance(item, AnswerEnd):
                return "".join(said) + (f"\n{CUT}" if item.stop is StopCause.LENGTH else ""), item.figures
    raise ModelUnavailable("the model's answer has no end", advice="try again", partial="".join(said))


def _cache_remark(then: AnswerFigures, now: AnswerFigures) -> str:
    """Return a remark if another part of the prompt came from the cache, which can change single tokens by rounding."""
    return f"the server had {now.cached_tokens} of its tokens in the cache, {then.cached_tokens} were recorded"


def _text_of(then: ModelAnswered | ModelInterrupted) -> str:
    return then.text if isinstance(then, ModelAnswered) else f"{then.partial}\n{CUT}"


def _difference(then: str, now: str) -> PromptDifference | None:
    if then == now:
        return None
    diff = short_diff(then.splitlines(), now.splitlines())
    return PromptDifference("the answer is another one", "", diff or "only in how its lines end")
