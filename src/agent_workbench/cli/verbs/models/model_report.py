"""Facts and test report of a model, as lines for people and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence

from agent_workbench.core.diagnostics.model_trials import Fitness, ModelReport
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.text.sanitizer import sanitize_line

WHY_CHARS = 200
_WORDS = {True: "yes", False: "no", None: "could not be tried"}


def fact_lines(facts: ModelFacts) -> tuple[str, ...]:
    """Return a line for each fact, and one for each missing capability of the server."""
    context = f"{facts.context_tokens} tokens for one conversation" if facts.context_tokens else "unknown"
    return (
        f"model     {facts.model}",
        f"endpoint  {facts.endpoint}  {facts.build}".rstrip(),
        f"context   {context}",
        f"grammar   {'taken' if facts.takes_grammar else 'not taken; answers are checked all the same'}",
        f"tokens    {'counted' if facts.counts_tokens else 'not counted'}",
        f"cache     {'told' if facts.tells_cache else 'not told'}",
        f"thinking  {'yes' if facts.thinks else 'no'}",
        *(f"off       {lack}" for lack in facts.off),
    )


def with_advice(error: WorkbenchError) -> str:
    """Return an error with its advice."""
    return f"{error} ({error.advice})" if error.advice else str(error)


def report_lines(report: ModelReport, verdicts: Sequence[Fitness]) -> Iterator[str]:
    """Yield the lines of the report, the verdict last."""
    yield from fact_lines(report.facts)
    yield ""
    for number, each in enumerate(report.asked, 1):
        mark = "✓" if each.right else "~" if each.valid else "✗"
        why = f"  {sanitize_line(each.why, WHY_CHARS)}" if each.why else ""
        yield f"{number:>4} {mark} {each.name:<20} {each.seconds:6.1f} s{why}"
    yield f"  {'✓ as asked   ~ the form alone   ✗ not even that':>52}"
    yield ""
    count = len(report.asked)
    yield f"form      {sum(each.valid for each in report.asked)} of {count} ({report.valid_share:.0%})"
    yield f"sense     {sum(each.right for each in report.asked)} of {count} ({report.right_share:.0%})"
    prefill = f"prompts {report.prefill_tokens_per_second:,.0f} tokens/s"
    yield f"speed     {report.tokens_per_second:,.1f} tokens/s, {prefill}"
    yield f"grammar   kept: {_WORDS[report.keeps_grammar]}"
    yield f"cache     {_cache(report)}"
    cached = _WORDS[report.repeats_cached]
    yield f"seed      repeats an answer: {_WORDS[report.repeats]}; with what the cache holds too: {cached}"
    if report.stopped:
        yield f"stopped   {report.stopped}"
    yield ""
    for verdict in verdicts:
        because = sanitize_line(verdict.because, WHY_CHARS)
        yield f"{'fit' if verdict.fit else 'not fit'} as {verdict.role.value}: {because}"
    for remark in dict.fromkeys(remark for verdict in verdicts for remark in verdict.but):
        yield f"  but {remark}"


def _cache(report: ModelReport) -> str:
    reads = report.reads
    if reads is None:
        return "the server does not tell"
    again = f"{reads.again_tokens:,} of {reads.prompt_tokens:,} prompt tokens read again ({reads.again_share:.1%})"
    return f"{again}, {reads.new_tokens:,} new"


def as_json(report: ModelReport, verdicts: Sequence[Fitness]) -> Mapping[str, object]:
    """Return the report as one value; speeds are in tokens per second, None means not tested."""
    facts, reads = report.facts, report.reads
    return {
        "model": facts.model,
        "endpoint": facts.endpoint,
        "build": facts.build,
        "context_tokens": facts.context_tokens,
        "thinks": facts.thinks,
        "off": list(facts.off),
        "valid_share": report.valid_share,
        "right_share": report.right_share,
        "tokens_per_second": round(report.tokens_per_second, 2),
        "prefill_tokens_per_second": round(report.prefill_tokens_per_second, 2),
        "keeps_grammar": report.keeps_grammar,
        "repeats": report.repeats,
        "repeats_cached": report.repeats_cached,
        "reads": None
        if reads is None
        else {"prompt": reads.prompt_tokens, "new": reads.new_tokens, "again": reads.again_tokens},
        "stopped": report.stopped,
        "questions": [
            {
                "name": each.name,
                "kind": each.kind.value,
                "ended": each.ended,
                "valid": each.valid,
                "right": each.right,
                "why": each.why,
                "seconds": round(each.seconds, 3),
            }
            for each in report.asked
        ],
        "fit": {
            each.role.value: {"fit": each.fit, "because": each.because, "but": list(each.but)} for each in verdicts
        },
    }
