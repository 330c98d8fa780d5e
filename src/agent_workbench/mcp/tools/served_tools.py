"""All tools of the server; those of skills, and those that start, stop and follow a task of the plan."""

import json
from functools import partial

from agent_workbench.api.sessions.task_runs import RunReport, TaskRuns, run_report
from agent_workbench.core.ids import session_id, task_id
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.core.tools.strict_json import JsonError, read_json
from agent_workbench.mcp.tools.consultant_tools import consultant_tools
from agent_workbench.mcp.tools.knowledge_tools import knowledge_tools
from agent_workbench.mcp.tools.repo_tools import repo_tools
from agent_workbench.mcp.tools.served_tool import Arguments, FailedCall, JsonObject, ServedTool, name_field, schema_of

PARKED = " It runs only where approvals.script is auto and a sandbox confines it; else it is refused: a person decides."


def served_tools(invocation: Invocation, runs: TaskRuns) -> tuple[ServedTool, ...]:
    """Return the tools for the repository around `invocation`; `runs` are the tasks that clients started."""
    return (
        *repo_tools(invocation),
        *run_tools(invocation, runs),
        *consultant_tools(invocation),
        *knowledge_tools(invocation),
        *skill_tools(invocation),
    )


def run_tools(invocation: Invocation, runs: TaskRuns) -> tuple[ServedTool, ...]:
    """Return the tools; `runs` holds what they start."""
    session = {"session": name_field("the session that run_task returned, such as 20261120T101500-ab2cde")}
    return (
        ServedTool(
            "run_task",
            "Start a task of the plan, unattended, under the repository's own approvals; proposals that need a person "
            "are parked. Returns at once with the session to ask run_status about. A task that is under way here is "
            "not started again: its session is returned. Call it again to continue after a person decided.",
            schema_of({"task": name_field("the id of the task in the plan, such as T-1")}, {}),
            partial(_run_task, runs),
            reads=False,
        ),
        ServedTool(
            "run_status",
            "Tell how a run goes: running, parked (a person is needed), stopped, done or failed, with its last events.",
            schema_of(session, {}),
            partial(_run_status, invocation),
        ),
        ServedTool(
            "run_stop",
            "Stop a run that this server started, and tell how it stands. Nothing is lost: run_task continues it.",
            schema_of(session, {}),
            partial(_run_stop, invocation, runs),
            reads=False,
        ),
    )


async def _run_task(runs: TaskRuns, arguments: Arguments) -> JsonObject:
    started = await runs.start(task_id(arguments.text("task")))
    if started.end is not None:
        return {"task": started.task, "session": None, "state": "done", "reason": started.end.reason}
    return {"task": started.task, "session": started.session, "state": "running"}


async def _run_status(invocation: Invocation, arguments: Arguments) -> JsonObject:
    return _document(await run_report(invocation, session_id(arguments.text("session"))))


async def _run_stop(invocation: Invocation, runs: TaskRuns, arguments: Arguments) -> JsonObject:
    session = session_id(arguments.text("session"))
    await runs.stop(session)
    return _document(await run_report(invocation, session))


def _document(report: RunReport) -> JsonObject:
    return {
        "session": report.session,
        "task": report.task,
        "state": report.state.value,
        "reason": report.reason,
        "branch": report.branch,
        "commit": report.commit or None,
        "steps": report.steps,
        "tokens": report.tokens,
        "waiting": [{"id": item.id, "kind": item.proposal.kind.value} for item in report.waiting],
        "log": list(report.log),
    }


def skill_tools(invocation: Invocation) -> tuple[ServedTool, ...]:
    """Return the tools. In a repository without trust they know the skills of the user and of the package."""
    return tuple(
        ServedTool(
            spec.name,
            f"{spec.summary[0].upper()}{spec.summary[1:]}.{'' if _reads(spec) else PARKED}",
            spec.input_schema,
            partial(_call, invocation, spec.name),
            reads=_reads(spec),
        )
        for spec in SKILL_SPECS
    )


def _reads(spec: ToolSpec) -> bool:
    return spec.permission is Permission.READ


async def _call(invocation: Invocation, tool: str, arguments: Arguments) -> JsonObject:
    from agent_workbench.api.extensions.skill_tools import call_skill_tool

    result = await call_skill_tool(invocation, tool, json.dumps(dict(arguments.values)))
    try:
        structured = read_json(result.structured) if result.structured else None
    except JsonError:
        structured = None
    outcome: JsonObject = structured if isinstance(structured, dict) else {}
    cut: JsonObject = {"cut_bytes": result.cut_bytes} if result.cut_bytes else {}
    if result.failed:
        raise FailedCall(result.text, outcome and {**outcome, **cut})
    return {**(outcome or {"text": result.text}), **cut}
