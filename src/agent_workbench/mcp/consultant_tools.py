"""Consultants for clients: tools that ask one of the workbench, and prompts with the discipline of each."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from agent_workbench.core.consult_requests import (
    CONSULTANTS,
    FILES,
    MODEL,
    ROOT,
    SESSION,
    ConsultantFacts,
    check_label,
    consultant_named,
    log_rows,
    request_of,
)
from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.mcp.served_tool import (
    Arguments,
    JsonObject,
    ServedTool,
    files_field,
    name_field,
    schema_of,
    text_field,
)

if TYPE_CHECKING:
    from mcp import types as wire


_SHORT = {ROOT, MODEL, SESSION, "test_path", "impl_path", "test_cmd", "output_path"}

ABOUT: Mapping[str, str] = {
    ROOT: "the root folder of the served repository",
    FILES: "paths of the files to judge, relative to the root",
    MODEL: "ask only this endpoint or model (list_models names them)",
    SESSION: "a label; consultations with the same label know of each other",
    "spec": "the behaviour to be tested",
    "test_path": "path of the test file",
    "impl_path": "path of the file with the implementation",
    "test_cmd": "the command that runs the tests",
    "context": "what the consultant should know besides",
    "error": "the error, its output or its stack trace",
    "requirements": "what the specification has to cover",
    "output_path": "the file that the specification is for",
}
"""Descriptions of the arguments of consultants."""


def consultant_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return a tool for each consultant, the log of their answers, and a plain question to a model."""
    # One after the other: a label's journal has one writer, and one local model gains nothing from two questions.
    turn = asyncio.Lock()
    label = {SESSION: name_field("the label that the consultations were made with, or a session")}
    model = {MODEL: name_field(ABOUT[MODEL])}
    return (
        *(_consultant(invocation, facts, turn) for facts in CONSULTANTS.values()),
        ServedTool(
            "session_log",
            "Show the consultations under a label: when, which, about what, by which model, and how they began.",
            schema_of(label, {}),
            partial(_session_log, invocation),
        ),
        ServedTool(
            "ask_model",
            "Ask one of the workbench's own models a question, without a discipline and without files.",
            schema_of({"prompt": text_field("the question, whole")}, model),
            partial(_ask_model, invocation),
        ),
        ServedTool(
            "tier",
            "Tell which model endpoints answer now, local, remote and paid, and what can be done with them.",
            schema_of({}, {}),
            partial(_tier, invocation),
        ),
    )


def _consultant(invocation: Invocation, facts: ConsultantFacts, turn: asyncio.Lock) -> ServedTool:
    required = {name: _field(name) for name in facts.required}
    optional = {name: _field(name) for name in (*facts.optional, MODEL, SESSION) if name not in required}
    return ServedTool(
        facts.name,
        f"Ask a consultant to {facts.summary}.{' It is shown the named files.' if facts.paths else ''}",
        schema_of(required, optional),
        partial(_consult, invocation, facts, turn),
    )


def _field(name: str) -> JsonObject:
    if name == FILES:
        return files_field(ABOUT[name])
    return name_field(ABOUT[name]) if name in _SHORT else text_field(ABOUT[name])


async def _consult(
    invocation: Invocation, facts: ConsultantFacts, turn: asyncio.Lock, arguments: Arguments
) -> JsonObject:
    from agent_workbench.subjects.consult_calls import consult

    given = {name: value for name, value in arguments.values.items() if value is not None}
    request = request_of(facts.name, given)
    async with turn:
        answer = await consult(invocation, request)
    told: JsonObject = {"model": answer.model, "duration_ms": answer.duration_ms}
    if facts.name == "trainer":
        told = {"reader_analysis": answer.reader_analysis, "writer_output": answer.text, **told}
    else:
        told = {"text": answer.text, **told}
    return {**told, "remarks": [sanitize_line(each) for each in answer.remarks]} if answer.remarks else told


async def _session_log(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.consult_calls import session_log

    label = arguments.text(SESSION)
    check_label(label)
    return {"session_id": label, "entries": list(log_rows(await session_log(invocation, label)))}


async def _ask_model(invocation: Invocation, arguments: Arguments) -> JsonObject:
    from agent_workbench.subjects.models.calls import ask_model

    answer = await ask_model(invocation, arguments.text("prompt"), arguments.text(MODEL))
    return {"text": answer.text, "model": answer.model, "duration_ms": answer.duration_ms}


async def _tier(invocation: Invocation, _: Arguments) -> JsonObject:
    from agent_workbench.subjects.consult_calls import tier

    report = await tier(invocation)
    return {
        "level": report.level,
        "endpoints": [
            {"name": each.name, "tier": each.tier.value, "answers": not each.problem, "problem": each.problem}
            for each in report.endpoints
        ],
    }


def listed_prompts() -> "tuple[wire.Prompt, ...]":
    """Return a prompt for each consultant."""
    from mcp import types as wire

    return tuple(
        wire.Prompt(
            name=facts.name,
            description=f"How to {facts.summary}: the discipline of our consultant, for your own model.",
            arguments=[
                wire.PromptArgument(name=name, description=ABOUT[name], required=name in facts.required)
                for name in _arguments(facts)
            ],
        )
        for facts in CONSULTANTS.values()
    )


async def prompt_text(invocation: Invocation, name: str, given: Mapping[str, str]) -> str:
    """Return a prompt with the arguments that a client gave; raise `UsageError` that names a wrong one."""
    from agent_workbench.core.consult_requests import checked_request, log_json, request_of, task_lines
    from agent_workbench.subjects.consult_calls import session_log
    from agent_workbench.subjects.skills.calls import discipline_prompt

    facts = consultant_named(name)
    if missing := [each for each in _arguments(facts) if each in facts.required and not given.get(each, "").strip()]:
        raise UsageError(f"{name}: argument {missing[0]} is missing", advice=f"it takes {', '.join(_arguments(facts))}")
    files = [each.strip() for each in given.get(FILES, "").split(",") if each.strip()]
    request = checked_request(request_of(name, {**given, **({FILES: files} if FILES in given else {})}))
    root, discipline = await discipline_prompt(invocation, name)
    if not facts.about_session:
        return f"{discipline}\n\n{task_lines(request, root, '')}"
    log = log_json(await session_log(invocation, request.session))
    return f"{discipline}\n\nSESSION_ID: {request.session}\n\nSESSION_LOG:\n{log}"


def _arguments(facts: ConsultantFacts) -> tuple[str, ...]:
    """Return the names of a prompt's arguments: the repository is the served one."""
    return tuple(name for name in facts.arguments if name != ROOT)
