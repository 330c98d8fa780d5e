"""Prompts of the server: the discipline of each consultant, for the client's own model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_workbench.core.consult_requests import (
    CONSULTANTS,
    FILES,
    MODEL,
    ROOT,
    SESSION,
    ConsultantFacts,
    checked_request,
    consultant_named,
    log_json,
    request_of,
    task_lines,
)
from agent_workbench.core.errors import UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from mcp import types as wire

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
