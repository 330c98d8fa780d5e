"""`agent model`: pull, list, remove, serve, load, unload and test models, or show their status and test report."""

import argparse
import asyncio
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides, show_examples
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.diagnostics import Fitness, ModelReport
from agent_workbench.core.errors import ExitCode, WorkbenchError
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import bytes_text
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.core.diagnostics import EndpointLine


TRY_EXIT = "exit code: 0 the model is fit for steps (executor); 1 it is not; 5 it does not answer, or broke off"

WHY_CHARS = 200
_WORDS = {True: "yes", False: "no", None: "could not be tried"}


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=status)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    pulling = add_verb(below, "pull", "bring a GGUF file of a hub into the folder of models", pull)
    show_examples(
        pulling,
        "agent model pull OWNER/NAME-GGUF:Q4_K_M",
        "HF_ENDPOINT=https://hub.example agent model pull OWNER/NAME",
    )
    pulling.add_argument(
        "name", metavar="OWNER/NAME[:QUANT]", help="such as OWNER/NAME:Q8_0 (without QUANT: a usual one, Q4_K_M first)"
    )
    listing = add_verb(
        below,
        "list",
        "list the endpoints of each role in the order in which they are asked, and the models of this machine",
        show_list,
    )
    add_model_flags(listing)
    removing = add_verb(below, "rm", "remove a pulled model", remove)
    removing.add_argument("name", metavar="OWNER/NAME[:QUANT]", help="as `agent model list` prints it")
    serving = add_verb(below, "serve", "serve a GGUF file until interrupted", serve)
    serving.add_argument(
        "path", nargs="?", default="", metavar="FILE", help="the file (default: model.path of .agent.yml)"
    )
    served = add_verb(
        below, "served", "list the models of the servers in the settings, and which are loaded", show_served
    )
    loading = add_verb(below, "load", "load a model of such a server, and wait until it is in memory", load)
    unloading = add_verb(below, "unload", "unload a model of such a server", unload)
    for managing in (loading, unloading):
        managing.add_argument("name", metavar="NAME", help="as `agent model served` prints it")
    for managing in (served, loading, unloading):
        managing.add_argument("--model-url", metavar="URL", help="the server at this address")
    asking = add_verb(below, "status", "show which model answers for each role, and its capabilities", status)
    add_model_flags(asking)
    trying = add_verb(below, "test", "ask a model ten small questions, and report for which role it is fit", test)
    trying.epilog = TRY_EXIT
    trying.add_argument(
        "which", nargs="?", default="", metavar="NAME|URL|PATH", help="an endpoint, an address or a GGUF file"
    )
    trying.add_argument("--seconds", type=_seconds, default=600.0, help="time limit (600)")
    trying.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    verb.set_defaults(model=None, model_url=None)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")


def pull(options: argparse.Namespace) -> int:
    """Bring a model here, and print its path and how to use it."""
    from agent_workbench.cli.questions import ProgressLine
    from agent_workbench.subjects.models.calls import pull_model

    try:
        with ProgressLine() as line:
            pulled = pull_model(options.name, lambda path, there, size: line.show(_progress(path, there, size)))
    except KeyboardInterrupt:
        say_aside("stopped; the same command goes on where it was")
        raise
    say(str(pulled.path))
    say_aside(f"{bytes_text(pulled.size)}, checked, of commit {pulled.commit[:12]}")
    say_aside(f"use it: agent tui --model {shlex.quote(str(pulled.path))}, or model.path in your settings.yml")
    return ExitCode.DONE


def _progress(path: str, there: int, size: int) -> str:
    share = there / size if size else 1.0
    return f"{share:4.0%} of {bytes_text(size)}  {path.rpartition('/')[2]}"


def remove(options: argparse.Namespace) -> int:
    """Remove a pulled model and print what that freed."""
    from agent_workbench.subjects.models.calls import remove_model

    say(f"{bytes_text(remove_model(options.name))} freed")
    return ExitCode.DONE


def show_list(options: argparse.Namespace) -> int:
    """Print a line for each endpoint of each role, without asking any, and one for each model of this machine."""
    from agent_workbench.api.set_up import local_models
    from agent_workbench.subjects.models.calls import listed_endpoints, stored_models

    lines = asyncio.run(listed_endpoints(Invocation(Path.cwd(), os.environ, overrides(options)), say_aside))
    widths = [max(len(text) for text in column) for column in zip(*map(_cells, lines), strict=True)]
    for line in lines:
        say("  ".join(text.ljust(width) for text, width in zip(_cells(line), widths, strict=True)).rstrip())
    pulled = {model.path: f"pulled  {model.name}" for model in stored_models()}
    for text in asyncio.run(local_models(Invocation(Path.cwd(), os.environ, {}))).lines(pulled):
        say(text)
    return ExitCode.DONE


def _cells(line: "EndpointLine") -> tuple[str, ...]:
    price = "free" if line.price.is_free else f"${line.price.input:g} in, ${line.price.output:g} out a million tokens"
    key = f"key in {line.key_variable}{'' if line.key_set else ', which is not set'}" if line.key_variable else "no key"
    return line.role, line.name, line.where or "nothing is set", price, key


def show_served(options: argparse.Namespace) -> int:
    """Print a line for each model of each server; exit with 5 if no server lists any."""
    from agent_workbench.subjects.models.calls import served_models

    servers = asyncio.run(served_models(Invocation(Path.cwd(), os.environ, overrides(options)), say_aside))
    for line in (line for server in servers for line in server.lines()):
        say(line)
    if not servers:
        say_aside("the settings name no server; set model.url, or say --model-url URL")
    return ExitCode.DONE if any(server.models for server in servers) else ExitCode.MODEL


def load(options: argparse.Namespace) -> int:
    """Load a model and print its context there."""
    from agent_workbench.subjects.models.calls import load_model

    model = asyncio.run(load_model(Invocation(Path.cwd(), os.environ, overrides(options)), options.name, say_aside))
    context = f", context {model.context_tokens:,}" if model.context_tokens else ""
    say(f"{model.name} is {model.status}{context}")
    return ExitCode.DONE


def unload(options: argparse.Namespace) -> int:
    """Unload a model."""
    from agent_workbench.subjects.models.calls import unload_model

    asyncio.run(unload_model(Invocation(Path.cwd(), os.environ, overrides(options)), options.name, say_aside))
    say(f"{sanitize_line(options.name, 120)} is not loaded")
    return ExitCode.DONE


def serve(options: argparse.Namespace) -> int:
    """Serve until interrupted; print the address and how to use it."""
    from agent_workbench.subjects.models.calls import embedded_server

    flags = {"model.path": str(Path(options.path).expanduser().resolve())} if options.path else {}

    async def live() -> None:
        server = await embedded_server(Invocation(Path.cwd(), os.environ, flags), say)
        url, key = await server.start()
        try:
            say(f"listening {url}")
            for reason in server.options.reasons:
                say(f"  {reason}")
            say(f"  AGENT_API_KEY={key}    export it where you work, and in your settings.yml set")
            say(f"  model: {{url: {url}, api_key_env: AGENT_API_KEY}}")
            raise await server.ended()
        finally:
            await server.stop()

    asyncio.run(live())
    return ExitCode.DONE


def status(options: argparse.Namespace) -> int:
    """Print the model that answers for each role, and how its file is served; exit with 5 if none answers."""
    from agent_workbench.cli.questions import Remarks
    from agent_workbench.subjects.models.calls import answering, serving_reasons

    invocation = Invocation(Path.cwd(), os.environ, overrides(options))
    reasons = asyncio.run(serving_reasons(invocation, Remarks()))
    answers = asyncio.run(answering(invocation, Remarks()))
    errors = [answer for _, answer in answers if not isinstance(answer, ModelFacts)]
    if len(errors) == len(answers):
        raise errors[0]
    told: dict[tuple[str, ...], list[str]] = {}
    for role, answer in answers:
        lines = fact_lines(answer) if isinstance(answer, ModelFacts) else (f"nobody    {with_advice(answer)}",)
        told.setdefault(lines, []).append(role)
    for number, (lines, roles) in enumerate(told.items()):
        say(("\n" if number else "") + f"role      {', '.join(roles)}")
        for line in lines:
            say(line)
    for number, reason in enumerate(reasons):
        say(f"{'' if number else 'served':<10}{reason}")
    return ExitCode.MODEL if errors else ExitCode.DONE


def test(options: argparse.Namespace) -> int:
    """Test a model and print the report."""
    from agent_workbench.cli.questions import Remarks
    from agent_workbench.subjects.models.calls import run_model_test

    invocation = Invocation(Path.cwd(), os.environ, {})
    report, verdicts = asyncio.run(run_model_test(invocation, options.which, Remarks(), options.seconds))
    if options.json:
        say_json(as_json(report, verdicts))
    else:
        for line in report_lines(report, verdicts):
            say(line)
    if report.stopped:
        say_aside(f"not all was asked: {report.stopped}")
        return ExitCode.MODEL
    return ExitCode.DONE if verdicts[0].fit else ExitCode.FAILED


def fact_lines(facts: ModelFacts) -> tuple[str, ...]:
    """Return a line for each fact, and one for each missing capability of the server."""
    source = f" ({facts.context_source})" if facts.context_source else ""
    context = f"{facts.context_tokens} tokens for one conversation{source}" if facts.context_tokens else "unknown"
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
