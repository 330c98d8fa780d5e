"""A call from outside: journaled before it is made, decided by the policy alone, and never made twice."""

from pathlib import Path

import pytest

from agent_workbench.core import events as e
from agent_workbench.core.errors import ToolError
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Approval, Permission
from agent_workbench.engine.session.recorded_call import make_recorded_call
from tests.engine.stage import Stage, a_stage, reopened
from tests.engine.tools.test_tool_sources import calls_of, open_for, sources

SAY = '{"say": "hello"}'


async def made(stage: Stage, arguments: str = SAY) -> SourceResult:
    (skill,) = [each for each in stage.ports.tool_sources if each.name == "skill"]
    (spec,) = [each for each in await skill.list_tools() if each.name == "run_skill"]
    return await make_recorded_call(stage.session, spec, arguments)


def kinds(stage: Stage) -> list[str]:
    about = e.ChatStarted | e.ActionProposed | e.ActionDecided | e.ActionStarted | e.ActionFinished
    return [type(event).__name__ for event in stage.events if isinstance(event, about)]


async def test_it_is_journaled_before_and_after(tmp_path: Path) -> None:
    brought = sources(tmp_path)
    approvals = open_for(Permission.SCRIPT)
    async with a_stage(tmp_path, tool_sources=brought, approvals=approvals, headless=True) as stage:
        assert (await made(stage)).text == f"run_skill got {SAY}"
        await made(stage)
        assert kinds(stage) == [
            "ChatStarted",
            *["ActionProposed", "ActionDecided", "ActionStarted", "ActionFinished"] * 2,
        ]
        (decided, _) = [event for event in stage.events if isinstance(event, e.ActionDecided)]
        assert (decided.verdict, decided.by) == (Verdict.APPROVE, "policy:script=auto")
        assert stage.read_back() == stage.state
        assert calls_of(brought) == [("run_skill", SAY)] * 2


@pytest.mark.parametrize(
    ("approval", "holds", "reason"),
    [
        (Approval.ASK, True, "script: ask, and no rule allows it"),
        (Approval.DENY, True, "needs a person"),
        (Approval.AUTO, False, "no sandbox"),
    ],
)
async def test_what_needs_a_person_is_not_made(tmp_path: Path, approval: Approval, reason: str, *, holds: bool) -> None:
    brought = sources(tmp_path)
    approvals = open_for(Permission.SCRIPT, approval)
    async with a_stage(tmp_path, tool_sources=brought, approvals=approvals, headless=True, holds=holds) as stage:
        with pytest.raises(ToolError, match=reason):
            await made(stage)
        assert kinds(stage)[-1] == "ActionDecided"
        assert calls_of(brought) == []
        assert stage.state.waiting is None


async def test_a_secret_is_not_passed_on(tmp_path: Path) -> None:
    brought = sources(tmp_path)
    approvals, secrets = open_for(Permission.SCRIPT), {"TOKEN": "Planted-token-1234"}
    async with a_stage(tmp_path, tool_sources=brought, approvals=approvals, headless=True, secrets=secrets) as stage:
        with pytest.raises(ToolError, match="secret"):
            await made(stage, '{"say": "Planted-token-1234"}')
        assert calls_of(brought) == []
        assert "Planted-token-1234" not in str(stage.events)


async def test_an_interrupted_call_is_unknown_and_not_made_again(tmp_path: Path) -> None:
    brought = sources(tmp_path)
    async with a_stage(tmp_path, tool_sources=brought, approvals=open_for(Permission.SCRIPT), headless=True) as stage:
        record = stage.recorder.record

        async def killed(event: e.Event, *, after: int | None = None) -> e.Recorded:
            recorded = await record(event, after=after)
            if isinstance(event, e.ActionStarted):
                raise KeyboardInterrupt
            return recorded

        stage.recorder.record = killed  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            await made(stage)
        await stage.session.close()
        await stage.recorder.close()
        async with reopened(stage) as again:
            await made(again, '{"say": "again"}')
            results = [event.result for event in again.events if isinstance(event, e.ActionFinished)]
        assert results == [e.ActionResult.UNKNOWN, e.ActionResult.OK]
        assert calls_of(brought) == [("run_skill", '{"say": "again"}')]
