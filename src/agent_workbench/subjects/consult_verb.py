"""`agent consult`: ask a consultant about files, an error, requirements or a session."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from agent_workbench.cli.output import say, say_aside, say_cells, say_headings, say_json
from agent_workbench.cli.questions import ProgressLine, Remarks
from agent_workbench.core.consult_findings import findings_of, review_counts
from agent_workbench.core.consult_requests import CONSULTANTS, FILES, SESSION, ConsultAnswer, ConsultRequest, request_of
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.live import Streaming
from agent_workbench.core.session_request import Invocation

MOST_CHARS = 60_000
STATS, LOG, TIER = "stats", "log", "tier"
SUBJECTS = {
    "tdd_red": ("spec",),
    "tdd_green": ("test_path",),
    "tdd_refactor": ("test_path", "impl_path"),
    "debug": ("error",),
    "spec": ("requirements",),
    "retrospective": (SESSION,),
    "trainer": (SESSION,),
}
"""Arguments that the words of the command line stand for; those of `review` are files."""
TEXTS = frozenset({"error", "requirements", "spec"})
CONSULT_EXIT = "exit code: 0 answered; 1 a review with critical findings; 5 no endpoint answers"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    listed = "\n".join(f"  {facts.name:<14} {facts.summary}" for facts in CONSULTANTS.values())
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    verb.description = (
        f"{verb.description or ''}\n\nconsultants:\n{listed}\n\n"
        f"  {STATS:<14} show how often the answers of each model were taken\n"
        f"  {LOG:<14} show the consultations of a session or label\n"
        f"  {TIER:<14} show which endpoints answer now"
    ).strip()
    verb.epilog = CONSULT_EXIT
    names = (*CONSULTANTS, STATS, LOG, TIER)
    verb.add_argument("name", metavar="NAME", choices=names, help="consultant, or stats, log, tier")
    words = "files for review, tdd_green, tdd_refactor; a label for retrospective, trainer, log; else text (`-`: stdin)"
    verb.add_argument("words", nargs="*", metavar="WORDS", help=words)
    verb.add_argument("--context", default="", metavar="TEXT", help="what the consultant should know besides")
    verb.add_argument("--output", default="", metavar="PATH", help="path that the specification will have")
    verb.add_argument("--test-command", default="", metavar="LINE", help="command that runs the tests")
    verb.add_argument("--model", default="", metavar="NAME", help="the only endpoint to ask, or the model of one")
    verb.add_argument(
        "--session", default="", metavar="LABEL", help="free label; earlier consultations under it are shown"
    )
    verb.add_argument("--json", action="store_true", help="print one line of JSON")


def execute(options: argparse.Namespace) -> int:
    """Ask, print the answer, and return the exit code."""
    invocation = Invocation(Path.cwd(), os.environ, {})
    match options.name:
        case "stats":
            return _stats(invocation, options)
        case "log":
            return _log(invocation, options)
        case "tier":
            return _tier(invocation, options)
        case _:
            return _consult(invocation, options)


def _consult(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.subjects.consult_calls import consult

    request = _request(options)
    with ProgressLine() as line:

        def show(streaming: Streaming) -> None:
            line.show(f"{request.skill}: {streaming.tokens} tokens · {streaming.text[-200:]}")

        answer = asyncio.run(consult(invocation, request, report=show, say=Remarks()))
    found = findings_of(answer.text, request.files)
    counts = review_counts(answer.text, found)
    if options.json:
        say_json(_as_json(answer, request))
    else:
        if answer.reader_analysis:
            say(f"{answer.reader_analysis}\n\n---\n")
        say(answer.text)
        tried = f", {len(answer.attempts)} attempts" if len(answer.attempts) > 1 else ""
        say_aside(f"{answer.model} in {answer.duration_ms / 1000:.1f} s{tried}")
    if request.skill == "review" and not counts.stated:
        say_aside(f"{counts}: the answer does not end with the line that counts them")
    for remark in answer.remarks:
        say_aside(remark)
    return ExitCode.FAILED if request.skill == "review" and counts.critical else ExitCode.DONE


def _request(options: argparse.Namespace) -> ConsultRequest:
    """Return the request that the command line stands for; raise `UsageError`."""
    facts = CONSULTANTS[options.name]
    given = {"context": options.context, "output_path": options.output, "test_cmd": options.test_command}
    for name, value in given.items():
        if value and name not in facts.arguments:
            flag = {"output_path": "--output", "test_cmd": "--test-command"}.get(name, f"--{name}")
            raise UsageError(f"{facts.name} takes no {flag}", advice="leave it out")
    arguments: dict[str, object] = {name: value for name, value in given.items() if value}
    arguments |= {name: value for name, value in (("model", options.model), (SESSION, options.session)) if value}
    words = list(options.words)
    if facts.name == "review":
        if not words:
            raise _without_subject(facts.name, "FILE...")
        arguments[FILES] = words
        return request_of(facts.name, arguments)
    subjects = SUBJECTS[facts.name]
    if len(subjects) == 1 and subjects[0] in TEXTS:
        words = [_stdin() if words == ["-"] else " ".join(words)]
        if not words[0].strip():
            raise _without_subject(
                facts.name, f"{subjects[0].upper()}`, or `COMMAND 2>&1 | agent consult {facts.name} -"
            )
    elif not words and SESSION not in subjects:
        raise _without_subject(facts.name, " ".join(subjects).upper())
    if len(words) > len(subjects):
        raise UsageError(f"{facts.name} takes {' and '.join(subjects)}, not {len(words)} words")
    return request_of(facts.name, arguments | dict(zip(subjects, words, strict=False)))


def _without_subject(name: str, subject: str) -> UsageError:
    return UsageError(f"{name} was given nothing to judge", advice=f"`agent consult {name} {subject}`")


def _stdin() -> str:
    """Return what standard input holds, its head and tail if it is long: a trace ends with its cause."""
    text = sys.stdin.read(20 * MOST_CHARS)
    if len(text) <= MOST_CHARS:
        return text
    kept = MOST_CHARS // 2 - 100
    return f"{text[:kept]}\n… {len(text) - 2 * kept:,} characters are left out …\n{text[-kept:]}"


def _as_json(answer: ConsultAnswer, request: ConsultRequest) -> dict[str, object]:
    found = findings_of(answer.text, request.files)
    shown: dict[str, object] = msgspec.to_builtins(answer)
    if request.skill == "review":
        shown["findings"] = [
            {"severity": each.severity.value, "path": each.path, "line": each.line, "text": each.text} for each in found
        ]
        shown["critical"] = review_counts(answer.text, found).critical
    return shown


def _stats(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.subjects.consult_calls import consult_stats

    rates = asyncio.run(consult_stats(invocation))
    if options.json:
        say_json([{**msgspec.to_builtins(each), "share": round(each.share, 4)} for each in rates])
    elif not rates:
        say_aside("no consultant was asked in this repository yet")
    else:
        say_headings(("consultant", "model", "taken", "share"))
        for each in rates:
            say_cells((each.skill, each.model, f"{each.accepted}/{each.attempts}", f"{each.share:.0%}"))
    return ExitCode.DONE


def _log(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.subjects.consult_calls import session_log

    label = options.session or " ".join(options.words)
    if not label:
        raise UsageError("log needs a session or a label", advice="name it: `agent consult log LABEL`")
    entries = asyncio.run(session_log(invocation, label))
    if options.json:
        say_json(msgspec.to_builtins(entries))
    elif not entries:
        say_aside(f"nothing is logged under {label!r}")
    else:
        say_headings(("time", "consultant", "phase", "status", "model", "message"))
        for each in entries:
            say_cells((each.timestamp[:19], each.skill, each.phase, each.final_status, each.model_used, each.message))
    return ExitCode.DONE if entries else ExitCode.FAILED


def _tier(invocation: Invocation, options: argparse.Namespace) -> int:
    from agent_workbench.subjects.consult_calls import tier

    found = asyncio.run(tier(invocation, Remarks()))
    if options.json:
        say_json(msgspec.to_builtins(found))
    else:
        say(found.level)
        say_headings(("endpoint", "tier", "state"))
        for each in found.endpoints:
            say_cells((each.name, each.tier.value, each.problem or "answers"))
    return ExitCode.DONE if found.level != "none" else ExitCode.MODEL
