"""`agent model`: pull, list, remove, serve and test models, or show their status."""

import argparse
import asyncio
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, add_verb, overrides, show_examples
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.cli.verbs.models.model_report import fact_lines, with_advice
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.model import ModelFacts
from agent_workbench.core.text.amounts import bytes_text

if TYPE_CHECKING:
    from agent_workbench.core.diagnostics.endpoints import EndpointLine

TRY_EXIT = "exit code: 0 the model is fit for steps (executor); 1 it is not; 5 it does not answer, or broke off"


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
    from agent_workbench.api.model_files import pull_model
    from agent_workbench.cli.progress import ProgressLine

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
    from agent_workbench.api.model_files import remove_model

    say(f"{bytes_text(remove_model(options.name))} freed")
    return ExitCode.DONE


def show_list(options: argparse.Namespace) -> int:
    """Print a line for each endpoint of each role, without asking any, and one for each model of this machine."""
    from agent_workbench.api.model_files import stored_models
    from agent_workbench.api.models import listed_endpoints
    from agent_workbench.api.set_up import local_models

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


def serve(options: argparse.Namespace) -> int:
    """Serve until interrupted; print the address and how to use it."""
    from agent_workbench.api.models import embedded_server

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
    """Print the model that answers for each role; exit with 5 if none does."""
    from agent_workbench.api.models import answering
    from agent_workbench.cli.progress import Remarks

    answers = asyncio.run(answering(Invocation(Path.cwd(), os.environ, overrides(options)), Remarks()))
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
    return ExitCode.MODEL if errors else ExitCode.DONE


def test(options: argparse.Namespace) -> int:
    """Test a model and print the report."""
    from agent_workbench.api.models import run_model_test
    from agent_workbench.cli.progress import Remarks
    from agent_workbench.cli.verbs.models.model_report import as_json, report_lines

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
