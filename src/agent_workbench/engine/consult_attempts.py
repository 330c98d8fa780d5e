"""Attempts of a consultation: its endpoints, by name or by the skill's chain, are asked until an answer is taken."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.core.consult_findings import MAX_ANSWER_CHARS, bounded, without_stray_json
from agent_workbench.core.consult_requests import (
    AttemptVerdict,
    ConsultAttempt,
    ConsultRequest,
    EndpointTier,
    consultant_named,
)
from agent_workbench.core.diagnostics import endpoint_named, tier_of
from agent_workbench.core.errors import ContextOverflow, ModelError, ModelUnavailable, UsageError
from agent_workbench.core.events import ConsultantAsked
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import (
    AnswerCost,
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    EndpointChoice,
    Message,
    ModelFacts,
    ModelRequest,
    PromptProgress,
    Purpose,
    StopCause,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import SHORT_FORM, Chain
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.text.repetition import RepetitionDetector
from agent_workbench.core.tools.strict_json import JsonError, read_bounded_json
from agent_workbench.engine.consult_context import ConsultContext, consult_messages, verifier_messages
from agent_workbench.engine.prompt.messages import prompt_sha

_CUT = {
    StopCause.LENGTH: "the answer was cut at the token limit",
    StopCause.REPETITION: "the answer was stopped where it began to repeat itself",
}
WARM_SECONDS = 0.2
"""An endpoint that is ready within this time had its model loaded."""
LOADING_SECONDS = 30.0
"""Time that an endpoint may take to load its model while another one is left to ask."""
VERIFIER_SECONDS = 30.0
VERIFIER_TOKENS = 200
VERIFIER_CHARS = 4_000
MOST_FEEDBACK_CHARS = 500
TOTAL_FACTOR = 4
"""An answer may take this many times the seconds for which a server may be silent."""
NO_VERDICT = "the verifier gave no verdict"
STATUS = "`agent model status` shows which endpoints answer"
UNVERIFIED = "without `roles.verifier` every answer is taken"

CUT = "\n\n(The answer was cut at the token limit.)"
MOST_ENDPOINTS = 8


class Answering(Struct):
    """State of the attempts: those that ended, the verifier's feedback, and the answer that arrives now."""

    attempts: list[ConsultAttempt] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    shown: Streaming = field(default_factory=Streaming)
    asked: str = ""
    """Endpoint that is being asked, empty between attempts."""
    begun: float = 0.0


class TakenAnswer(Struct, frozen=True):
    """Answer that was taken: its text, its model, the characters left out, and remarks."""

    text: str
    model: str
    cut_chars: int = 0
    remarks: tuple[str, ...] = ()


async def ask_endpoints(context: ConsultContext, asked: ConsultantAsked, answering: Answering) -> TakenAnswer:
    """Return the first answer that is taken; every attempt is added to `answering`.

    Raises `ContextOverflow` for a prompt that is too long, `ModelUnavailable` if no endpoint is left, and the error of
    the only endpoint if it cannot be used with these settings.
    """
    for position, name in enumerate(asked.chain):
        others = position + 1 < len(asked.chain)
        taken = await _attempt(context, asked, answering, name, others=others)
        if taken is not None:
            return taken
    count = len(answering.attempts)
    reasons = "; ".join(f"{each.endpoint}: {each.feedback}" for each in answering.attempts)
    refused = any(each.verdict is AttemptVerdict.ESCALATE for each in answering.attempts)
    advice = f"{UNVERIFIED}; {STATUS}" if refused else STATUS
    raise ModelUnavailable(f"all tiers exhausted after {count} attempt(s): {reasons}", advice=advice)


async def _attempt(
    context: ConsultContext, asked: ConsultantAsked, answering: Answering, name: str, *, others: bool
) -> TakenAnswer | None:
    clock = context.ports.clock
    answering.asked, answering.begun, answering.shown = name, clock.monotonic_seconds(), Streaming()
    messages = consult_messages(asked, answering.feedback)
    seed = _seed(context)
    attempt = ConsultAttempt(
        *(name, "", tier_of(context.settings, name), 0, False, AttemptVerdict.ERROR),
        sha=prompt_sha(messages),
        seed=seed,
    )
    try:
        model = await context.ports.endpoints.named(name)
        facts, warm = await _observe(model, LOADING_SECONDS if others else None)
        attempt = replace(attempt, model=facts.model, warm_start=warm)
        request = _request(context, asked, messages, seed, others=others, thinks=facts.thinks)
        end = await _answer(context, model, request, answering)
        attempt = replace(attempt, model=end.model or attempt.model, figures=end.figures)
    except ModelError as error:
        attempt = replace(attempt, feedback=_short(str(error)), figures=_cost(answering, error.dollars))
        _ended(context, answering, attempt)
        if isinstance(error, ContextOverflow) or (error.lasting and len(asked.chain) == 1):
            raise  # nothing was tried where no model is configured
        return None
    text, cut = bounded(without_stray_json(answering.shown.text))
    if not text.strip():
        _ended(context, answering, replace(attempt, feedback="the answer is empty"))
        return None
    refused, verifying = await _verify(context, asked, attempt, text)
    verdict = AttemptVerdict.ESCALATE if refused else AttemptVerdict.ACCEPT
    kept = text if refused else ""
    _ended(context, answering, replace(attempt, verdict=verdict, feedback=refused, verifying=verifying, text=kept))
    if refused:
        answering.feedback.append(refused)
        return None
    limit = (_CUT[end.stop],) if end.stop in _CUT else ()
    long = (f"{cut:,} characters of the answer are left out",) if cut else ()
    return TakenAnswer(text, attempt.model or name, cut, (*limit, *long))


def stopped_attempt(context: ConsultContext, answering: Answering) -> None:
    """Add the attempt that a stop interrupted, with its cost so far."""
    if answering.asked:
        attempt = ConsultAttempt(
            *(answering.asked, "", tier_of(context.settings, answering.asked), 0, False, AttemptVerdict.ERROR),
            feedback="stopped by the user",
            figures=_cost(answering, 0.0),
        )
        _ended(context, answering, attempt)


def _ended(context: ConsultContext, answering: Answering, attempt: ConsultAttempt) -> None:
    seconds = context.ports.clock.monotonic_seconds() - answering.begun
    answering.attempts.append(replace(attempt, duration_ms=max(0, round(seconds * 1000))))
    answering.asked = ""


async def _observe(model: Model, most_seconds: float | None) -> tuple[ModelFacts, bool]:
    """Return the facts of an endpoint, and True if it had its model loaded."""
    observing = asyncio.ensure_future(model.observe())
    try:
        ready, _ = await asyncio.wait({observing}, timeout=WARM_SECONDS)
        async with asyncio.timeout(most_seconds):
            return await observing, bool(ready)
    except TimeoutError:
        raise ModelUnavailable(f"it was not ready after {most_seconds:g} s") from None
    finally:
        observing.cancel()
        await asyncio.gather(observing, return_exceptions=True)


def _request(
    context: ConsultContext,
    asked: ConsultantAsked,
    messages: tuple[Message, ...],
    seed: int,
    *,
    others: bool,
    thinks: bool,
) -> ModelRequest:
    ended = (each for each in context.state().consultations if each.asked.skill == asked.skill)
    return ModelRequest(
        messages=messages,
        purpose=Purpose.CONSULTANT,
        answer_tokens=asked.answer_tokens,
        answer_seconds=context.settings.model.answer_seconds,
        subject=asked.skill,
        sampling=context.settings.sampling.of(Purpose.CONSULTANT).sampling(thinks=thinks),
        seed=seed,
        dollars_left=context.dollars_left,
        answered=sum(each.answered is not None for each in ended),
        patient=not others,
    )


async def _answer(context: ConsultContext, model: Model, request: ModelRequest, answering: Answering) -> AnswerEnd:
    """Stream an answer into `answering.shown`; one that does not end is cut at a length and at a time."""
    counts = await model.count_tokens([each.text for each in request.messages])
    request = replace(request, prompt_tokens=sum(counts))
    detector = RepetitionDetector()
    try:
        async with (
            asyncio.timeout(request.answer_seconds * TOTAL_FACTOR),
            aclosing(model.answer(request)) as items,
        ):
            async for item in items:
                if isinstance(item, AnswerEnd):
                    return item
                answering.shown = _with(answering.shown, item)
                context.show(answering.shown)
                if isinstance(item, TextDelta) and (loop := detector.feed(item.text)):
                    answering.shown = replace(answering.shown, text=answering.shown.text[: loop.end])
                    return AnswerEnd(StopCause.REPETITION, _cost(answering, 0.0))
                if len(answering.shown.text) + len(answering.shown.thought) > 2 * MAX_ANSWER_CHARS:
                    return AnswerEnd(StopCause.LENGTH, _cost(answering, 0.0))
    except TimeoutError:
        seconds = request.answer_seconds * TOTAL_FACTOR
        raise ModelUnavailable(f"the answer did not end within {seconds:g} s") from None
    raise ModelUnavailable("the model's answer has no end")


def _with(shown: Streaming, item: AnswerItem) -> Streaming:
    match item:
        case TextDelta():
            return replace(shown, text=shown.text + item.text, tokens=shown.tokens + 1)
        case ThoughtDelta():
            return replace(shown, thought=shown.thought + item.text, tokens=shown.tokens + 1)
        case PromptProgress():
            return replace(shown, prompt_processed=item.processed_tokens, prompt_total=item.total_tokens)
        case AnswerCost():
            return replace(shown, dollars=item.dollars)
        case AnswerEnd() | EndpointChoice():  # an attempt tells which endpoint it asked
            return shown


def _cost(answering: Answering, dollars: float) -> AnswerFigures:
    """Return the figures of an answer that did not end, as far as they are known."""
    shown = answering.shown
    return AnswerFigures(shown.prompt_processed, 0, shown.tokens, dollars=max(dollars, shown.dollars))


async def _verify(
    context: ConsultContext, asked: ConsultantAsked, attempt: ConsultAttempt, text: str
) -> tuple[str, AnswerFigures]:
    """Return why an answer is not taken (empty: it is), and what asking the verifier cost.

    A verifier that does not answer in time, or not in its form, refuses. An endpoint with a price, and one that the
    call names, is not verified.
    """
    if not asked.verifier or asked.model or attempt.tier is EndpointTier.PAID:
        return "", AnswerFigures()
    answering = Answering()
    try:
        async with asyncio.timeout(VERIFIER_SECONDS):
            model = await context.ports.endpoints.named(asked.verifier)
            await model.observe()
            request = ModelRequest(
                messages=verifier_messages(asked, text),
                purpose=Purpose.CONSULTANT,
                answer_tokens=VERIFIER_TOKENS,
                answer_seconds=VERIFIER_SECONDS,
                subject="verifier",
                seed=attempt.seed,
                dollars_left=context.dollars_left,
                answered=0,
                patient=False,
            )
            quiet = replace(context, show=lambda _: None)
            end = await _answer(quiet, model, request, answering)
    except TimeoutError:
        return f"{NO_VERDICT} within {VERIFIER_SECONDS:g} s", _cost(answering, 0.0)
    except ModelError as error:
        return _short(f"{NO_VERDICT}: {error}"), _cost(answering, error.dollars)
    return _verdict(answering.shown.text), end.figures


def _verdict(said: str) -> str:
    """Return the reason in a verifier's answer, empty if it accepts."""
    try:
        value = read_bounded_json(said.strip()[:VERIFIER_CHARS])
    except JsonError:
        return f"{NO_VERDICT}: its answer is no JSON"
    if not isinstance(value, dict) or not isinstance(value.get("accept"), bool):
        return f"{NO_VERDICT}: its answer has no `accept`"
    feedback = value.get("feedback")
    if value["accept"]:
        return ""
    return _short(feedback if isinstance(feedback, str) and feedback.strip() else "the verifier refused it")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_FEEDBACK_CHARS else f"{line[: MOST_FEEDBACK_CHARS - 1]}…"


def _seed(context: ConsultContext) -> int:
    """Return a seed that is reproducible from the journal, and another one for each prompt."""
    state = context.state()
    digest = sha256(f"{state.session}:{state.seq + 1}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFF_FFFF


def sent_messages(asked: ConsultantAsked, attempts: Sequence[ConsultAttempt]) -> tuple[tuple[Message, ...], ...]:
    """Return the messages of each recorded attempt, made again from the journal."""
    feedback: list[str] = []
    sent = []
    for attempt in attempts:
        sent.append(consult_messages(asked, feedback))
        if attempt.verdict is AttemptVerdict.ESCALATE:
            feedback.append(attempt.feedback)
    return tuple(sent)


def chain_of(settings: Settings, request: ConsultRequest) -> Chain:
    """Return the endpoints to ask in order; an endpoint that the request names is the only one.

    Raises `UsageError` for a name that is neither an endpoint nor the model of one: nobody chooses other addresses.
    """
    if request.model:
        return (endpoint_called(settings, request.model),)
    own = dict(settings.roles.skills)
    chains = (own[name] for name in consultant_named(request.skill).skills if own.get(name))
    return next(chains, settings.chain(Purpose.CONSULTANT))


def model_label(settings: Settings, endpoint: str) -> str:
    """Return the model of an endpoint for the prompt: its name in requests, else that of the endpoint."""
    found = endpoint_named(settings, endpoint)
    return (found.model if found is not None else "") or ("" if endpoint == SHORT_FORM else endpoint)


def endpoint_called(settings: Settings, name: str) -> str:
    """Return the endpoint with this name, or the first whose model has it; raise `UsageError` with those there are."""
    names = (*dict(settings.endpoints), SHORT_FORM)
    models = {model_label(settings, each): each for each in reversed(names)}
    models.pop("", None)
    if name in names:
        return name
    if name in models:
        return models[name]
    known = tuple(dict.fromkeys((*names, *models)))
    raise UsageError(
        f"{quoted(name)} is no endpoint and no model of one{did_you_mean(name, known)}",
        advice=f"there are: {', '.join(known)}",
    )


async def ask_once(model: Model, request: ModelRequest) -> tuple[str, str]:
    """Return the answer and the model that gave it; an endpoint that fails is followed by the next of the chain.

    Raises `ModelError` if none answers.
    """
    for _ in range(MOST_ENDPOINTS):
        await model.observe(request.purpose)
        text = ""
        try:
            async with aclosing(model.answer(request)) as items:
                async for item in items:
                    if isinstance(item, TextDelta):
                        text += item.text
                    elif isinstance(item, AnswerEnd):
                        return text + (CUT if item.stop is StopCause.LENGTH else ""), item.model or item.endpoint
        except ModelError as error:
            if not error.another:
                raise
    raise ModelUnavailable("no endpoint gave an answer", advice="`agent model status` tells which ones answer")
