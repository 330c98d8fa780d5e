"""Findings about the endpoints of all roles: reachability, fitness for each role, and the size of a model's context."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.diagnostics import EndpointLine, Finding, Fitness, Health, ModelReport, QuestionKind
from agent_workbench.core.errors import ContextOverflow, ModelError, WorkbenchError
from agent_workbench.core.model import AnswerEnd, Message, ModelFacts, ModelRequest, Purpose, Role
from agent_workbench.core.ports.model import Model

ENDPOINT_SECONDS = 10.0

LEAST_CONTEXT_TOKENS = 8_192
SLOW_TOKENS_PER_SECOND = 5.0
_MOST_READ_AGAIN = 0.05

SMALL_CONTEXT_TOKENS = 8_192
MEASURED_TOKENS = (2_048, 4_096, 8_192)
"""Sizes of the prompts that a server is measured with."""
MEASURE_SECONDS = 60.0
_PART = "context"
_WORDS = "one two three four five six seven eight nine ten "
# A prompt that lacks so little was counted in another way, not cut.
_WHOLE_SHARE = 0.97
_FEW, _MORE = 10, 20


class Spending(Struct, frozen=True):
    """Cost of paid endpoints today (None: unknown, for the reason `why`), and its cap."""

    spent: float | None
    cap: float
    why: str = ""
    advice: str = ""


class EndpointProbe(Struct, frozen=True):
    """Result of a probe: facts or a problem. An endpoint that starts on first use has neither."""

    facts: ModelFacts | None = None
    wrong: str = ""
    advice: str = ""


async def examine_endpoints(
    lines: Sequence[EndpointLine],
    model_of: Callable[[str], Model | None],
    cap: float,
    seconds: float = ENDPOINT_SECONDS,
) -> tuple[Finding, ...]:
    """Return a finding for each endpoint, and one for each role without a working endpoint.

    `model_of` returns the model to probe, or None for one that starts on first use; it raises `ModelError` for one that
    cannot start. With a `cap` of 0, endpoints with a price are not asked.
    """
    names = tuple(dict.fromkeys(line.name for line in lines))
    probes = dict(zip(names, await asyncio.gather(*(_probe(name, model_of, seconds) for name in names)), strict=True))
    of_each = (_finding([line for line in lines if line.name == name], probes[name]) for name in names)
    silent = {line.name for line in lines if probes[line.name].wrong}
    forbidden = {line.name for line in lines if not (cap or line.price.is_free)}
    return (*of_each, *_silent_roles(lines, silent, forbidden))


def examine_spending(lines: Sequence[EndpointLine], spending: Spending) -> tuple[Finding, ...]:
    """Return a finding about today's spending, nothing if no endpoint has a price."""
    paid = ", ".join(dict.fromkeys(line.name for line in lines if not line.price.is_free))
    if not paid:
        return ()
    if spending.spent is None:
        return (Finding("spending", Health.BAD, spending.why, spending.advice),)
    if not spending.cap:
        advice = "set cost_cap_daily to the dollars that a day may cost"
        return (Finding("spending", Health.WARNING, f"cost_cap_daily is 0, so {paid} is never asked", advice),)
    seen = f"${spending.spent:.4f} of ${spending.cap:g} (cost_cap_daily) were spent today (UTC)"
    if spending.spent >= spending.cap:
        return (Finding("spending", Health.WARNING, seen, "raise cost_cap_daily, or wait for the next day (UTC)"),)
    return (Finding("spending", Health.GOOD, seen),)


async def _probe(name: str, model_of: Callable[[str], Model | None], seconds: float) -> EndpointProbe:
    try:
        model = await asyncio.to_thread(model_of, name)
        if model is None:
            return EndpointProbe()
        async with asyncio.timeout(seconds):
            return EndpointProbe(await model.observe())
    except TimeoutError:
        return EndpointProbe(
            wrong=f"no answer within {seconds:g} s", advice="it may still load; its log says what it does"
        )
    except ModelError as error:
        return EndpointProbe(wrong=str(error), advice=error.advice or "its log says more")
    except WorkbenchError as error:
        return EndpointProbe(wrong=str(error), advice=error.advice or "look at its settings")


def _finding(lines: Sequence[EndpointLine], probe: EndpointProbe) -> Finding:
    line = lines[0]
    seen = [_who(line, probe), f"for {', '.join(each.role for each in lines)}"]
    if not line.price.is_free:
        seen.append(f"${line.price.input:g} in and ${line.price.output:g} out for a million tokens")
    if line.key_variable and line.key_variable not in probe.wrong:
        seen.append(f"key {line.key_variable} is {'set' if line.key_set else 'not set'}")
    if probe.facts is not None and probe.facts.off:
        seen.append(f"off: {', '.join(probe.facts.off)}")
    advice = probe.advice if probe.wrong else ""
    if line.key_variable and not line.key_set:
        advice = f"set {line.key_variable} where you start the workbench"
    elif not advice and probe.facts is not None and probe.facts.off:
        advice = "the workbench does without; llama.cpp's server lacks nothing"
    return Finding(f"endpoint {line.name}", Health.WARNING if advice else Health.GOOD, "; ".join(seen), advice)


def _who(line: EndpointLine, probe: EndpointProbe) -> str:
    if probe.wrong:
        return probe.wrong if line.where and line.where in probe.wrong else f"{line.where or 'not set'}: {probe.wrong}"
    if probe.facts is None:
        return f"{line.where}, started when it is asked"
    source = f" ({probe.facts.context_source})" if probe.facts.context_source else ""
    size = f"{probe.facts.context_tokens} tokens{source}" if probe.facts.context_tokens else "context unknown"
    return f"{probe.facts.model} at {line.where} {probe.facts.build}".rstrip() + f", {size}"


def _silent_roles(
    lines: Sequence[EndpointLine], silent: Collection[str], forbidden: Collection[str]
) -> Sequence[Finding]:
    """Return a finding for each role whose endpoints are all `silent`, or `forbidden` by their price."""
    roles = dict.fromkeys(line.role for line in lines)
    chains = {role: [line.name for line in lines if line.role == role] for role in roles}
    return [
        Finding(f"role {role}", Health.BAD, *_why_silent(names, silent, forbidden))
        for role, names in chains.items()
        if {*names} <= {*silent, *forbidden}
    ]


def _why_silent(names: Sequence[str], silent: Collection[str], forbidden: Collection[str]) -> tuple[str, str]:
    """Return the problem of a chain and advice, which names only endpoints that may be asked."""
    costly = [name for name in names if name in forbidden]
    free = [name for name in names if name not in forbidden]
    if not costly:
        return f"nobody answers: {', '.join(names)}", "start one of them, or name another one under roles"
    why = f"cost_cap_daily is 0, so {', '.join(costly)} is never asked"
    if not free:
        return why, "set cost_cap_daily, or name one that costs nothing under roles"
    return f"nobody answers: {', '.join(free)}; {why}", f"start {' or '.join(free)}, or set cost_cap_daily"


def fitness(report: ModelReport) -> tuple[Fitness, ...]:
    """Return the verdict for each role."""
    remarks = tuple(_remarks(report))
    return (_executor(report, remarks), _planner(report, remarks), _reflexion(report, remarks))


def _executor(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    steps = [each for each in report.asked if each.kind in {QuestionKind.CALL, QuestionKind.DIFF}]
    valid, right = sum(each.valid for each in steps), sum(each.right for each in steps)
    diffs = [each for each in steps if each.kind is QuestionKind.DIFF]
    changed = sum(each.right for each in diffs)
    seen = f"{valid} of {len(steps)} steps have the form, {right} do what was asked"
    seen += f", {changed} of {len(diffs)} diffs are right"
    fit = len(steps) > 0 and valid >= 0.85 * len(steps) and right >= 0.7 * len(steps) and changed >= 1
    small = 0 < report.facts.context_tokens < LEAST_CONTEXT_TOKENS
    if small:
        seen += f"; a context of {report.facts.context_tokens} tokens is too small for a task"
    return Fitness(Purpose.EXECUTOR, fit and not small, seen, remarks)


def _planner(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    return _by_one(report, remarks, Purpose.PLANNER, QuestionKind.PLAN, "the plan has its form, and tasks for the goal")


def _reflexion(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    return _by_one(report, remarks, Purpose.REFLEXION, QuestionKind.REFLEXION, "it says what failed")


def _by_one(report: ModelReport, remarks: tuple[str, ...], role: Purpose, kind: QuestionKind, good: str) -> Fitness:
    answer = next((each for each in report.asked if each.kind is kind), None)
    if answer is None:
        return Fitness(role, fit=False, because="it was not asked", but=())
    return Fitness(role, answer.right, good if answer.right else answer.why, remarks)


def _remarks(report: ModelReport) -> Iterator[str]:
    if report.keeps_grammar is False:
        yield "no grammar holds its answers: now and then a step will have to be asked for again"
    if 0 < report.tokens_per_second < SLOW_TOKENS_PER_SECOND:
        yield f"{report.tokens_per_second:.1f} tokens/s are slow: a step of 300 tokens takes a minute or more"
    if report.reads is None:
        yield "it does not tell what its cache holds: whether prompts are read again cannot be seen"
    elif report.reads.again_share > _MOST_READ_AGAIN:
        yield f"it reads {report.reads.again_share:.0%} of its prompts again: later steps become slow"
    if report.facts.thinks:
        yield "it thinks before each answer: that takes tokens and time, and is never sent back"
    if not report.facts.context_tokens:
        yield "the size of its context is not known: a task may end with a prompt that does not fit"


class MeasuredContext(Struct, frozen=True):
    """Tokens of the largest prompt that a server read whole; `cut`: it cut or refused the next larger one."""

    tokens: int = 0
    cut: bool = False


async def context_finding(model: Model, facts: ModelFacts, *, local: bool) -> Finding:
    """Return the finding; the model is measured if nobody states its context and it is a `local` one."""
    if facts.context_tokens:
        return _stated(facts)
    measured = await measure_context(model) if local else MeasuredContext()
    if not measured.tokens:
        seen = "the server does not say how large its context is, and may cut longer prompts without a word"
        return Finding(_PART, Health.WARNING, seen, "set model.context_tokens to its size")
    if not measured.cut:
        seen = f"at least {measured.tokens} tokens, measured; the server does not say how many more"
        slow = f"more took longer than {MEASURE_SECONDS:g} s to try; set model.context_tokens to its size"
        enough = measured.tokens >= MEASURED_TOKENS[-1] * _WHOLE_SHARE
        return Finding(_PART, Health.GOOD, seen) if enough else Finding(_PART, Health.WARNING, seen, slow)
    seen = f"about {measured.tokens} tokens, measured: a longer prompt is not read whole"
    advice = f"serve the model with a larger context, or set model.context_tokens: {measured.tokens}"
    return Finding(_PART, Health.WARNING, seen, advice)


def _stated(facts: ModelFacts) -> Finding:
    source = f" ({facts.context_source})" if facts.context_source else ""
    seen = f"{facts.context_tokens} tokens for one conversation{source}"
    if facts.context_tokens >= SMALL_CONTEXT_TOKENS:
        return Finding(_PART, Health.GOOD, seen)
    how = "model.context_tokens, or fewer slots on your server"
    if facts.build.startswith("Ollama"):
        how = "start it with OLLAMA_CONTEXT_LENGTH=16384"
    elif facts.build.startswith("LM Studio"):
        how = "load the model with a larger context length"
    return Finding(_PART, Health.WARNING, seen, f"{SMALL_CONTEXT_TOKENS} or more is comfortable: {how}")


async def measure_context(model: Model, seconds: float = MEASURE_SECONDS) -> MeasuredContext:
    """Return what the server reads of prompts of known sizes, as far as `seconds` allow.

    A larger prompt that it refuses for whatever reason is one that it cannot read.
    """
    found = MeasuredContext()
    try:
        async with asyncio.timeout(seconds):
            few, more = await _read(model, _FEW), await _read(model, _MORE)
            each = (more - few) / (_MORE - _FEW)
            for size in MEASURED_TOKENS if each > 0 else ():
                repeated = _FEW + round((size - few) / each)
                told = await _read(model, repeated)
                if told < size * _WHOLE_SHARE:
                    return MeasuredContext(max(told, found.tokens), cut=True)
                found = MeasuredContext(told)
    except TimeoutError:
        return found
    except ContextOverflow as full:
        return MeasuredContext(max(full.context_tokens, found.tokens), cut=True)
    except ModelError:
        return replace(found, cut=found.tokens > 0)
    return found


async def _read(model: Model, repeated: int) -> int:
    """Return how many tokens the server read of a prompt, 0 if it does not say.

    No two prompts begin alike: some servers leave out what they have in their cache.
    """
    request = ModelRequest((Message(Role.USER, f"{repeated} {_WORDS * repeated}"),), answer_tokens=1)
    async with aclosing(model.answer(request)) as items:
        async for item in items:
            if isinstance(item, AnswerEnd):
                return item.figures.prompt_tokens
    return 0
