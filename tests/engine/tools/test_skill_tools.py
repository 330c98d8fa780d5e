"""The tools of skills in a task: when they are offered, and a run with each of them, from the prompt to the journal."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.approval_rules import offered_rules
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.events import ActionDecided, ActionFinished, ActionRejected, ApprovalChanged, TaskStarted
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposal_kinds import ScriptProposal
from agent_workbench.core.settings import DEFAULT_TOOLS, SKILL_TOOLS, Approval, Permission, Settings
from agent_workbench.core.tools.skill_tools import SKILL_SPECS
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.subjects.skills.tools_adapter import SkillTools
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change
from tests.fakes.ports import GivenSkills
from tests.subjects.skills.test_script_run import make_bench

RIGHT = change("wrong", "right")
SCRIPT = json.dumps({"skill_name": "sums", "script": "from scripts.add import add\nprint(add(40, 2))"})
OTHER = json.dumps({"skill_name": "sums", "script": "print('another')"})
NAMED = Settings(tools_allowed=(*DEFAULT_TOOLS, *SKILL_TOOLS))


async def tools_in(folder: Path) -> SkillTools:
    return (await asyncio.to_thread(make_bench, folder))[0].tools


def offered(stage: Stage) -> set[str]:
    (started,) = (each for each in stage.events if isinstance(each, TaskStarted))
    return {spec.name for spec in started.specs} & set(SKILL_TOOLS)


async def test_they_are_offered_where_a_skill_brings_files(tmp_path: Path) -> None:
    for name, has_files, settings, wanted in (
        ("none", False, Settings(), set[str]()),
        ("files", True, Settings(), set(SKILL_TOOLS)),
        ("named", False, Settings(tools_allowed=("finish", "list_skills")), {"list_skills"}),
    ):
        source = await tools_in(tmp_path / name / "tools")
        async with a_stage(
            tmp_path / name, [FINISH] * 9, settings=settings, approvals=OPEN, headless=True, tool_sources=(source,)
        ) as stage:
            skills = GivenSkills({"sums": "# Sums"}, has_files=has_files)
            stage.session.ports = replace(stage.session.ports, skills=skills)
            await run_unattended(stage.session, stage.recorder, (T1,))
            assert offered(stage) == wanted, name
            assert ("list_skills {}" in stage.model.requests[0].messages[0].text) is bool(wanted)


@pytest.mark.slow
async def test_a_task_reads_a_skill_and_runs_a_script(tmp_path: Path) -> None:
    source = await tools_in(tmp_path / "tools")
    sayings = [
        call("list_skills"),
        call("get_skill", '{"skill_name": "sums"}'),
        call("read_file_in_skill", '{"skill_name": "sums", "file_path": "../../.env"}'),
        call("run_python_script", SCRIPT),
        RIGHT,
        FINISH,
    ]
    approvals = replace(OPEN, script=Approval.AUTO)
    async with a_stage(
        tmp_path, sayings, settings=NAMED, approvals=approvals, headless=True, tool_sources=(source,)
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert ending.exit_code is ExitCode.DONE, ending
        finished = [each for each in stage.events if isinstance(each, ActionFinished)]
        told = [each.observation for each in finished]
        assert "sums: Add numbers. (5 tokens)" in told
        assert any("Use `scripts.add`." in each for each in told)
        assert any("leads out of the skill" in each for each in told)
        script = next(each for each in finished if each.observation.startswith("exit code 0\nstdout:\n42"))
        assert script.seconds > 0
        assert [each.difference for each in rerun(stage.journal())] == [None] * len(sayings)


async def test_a_script_that_cannot_run_comes_to_no_gate(tmp_path: Path) -> None:
    bench, _ = await asyncio.to_thread(make_bench, tmp_path / "tools")
    (bench.root / "skills" / "sums" / "requirements.txt").write_text("pyyaml\n")
    sayings = [
        call("run_python_script", SCRIPT),
        call("run_python_script", SCRIPT.replace("sums", "sum")),
        RIGHT,
        FINISH,
    ]
    async with a_stage(
        tmp_path, sayings, settings=NAMED, approvals=OPEN, headless=True, tool_sources=(bench.tools,)
    ) as stage:
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert ending.exit_code is ExitCode.DONE, ending
        reasons = [each.reason for each in stage.events if isinstance(each, ActionRejected)]
        assert reasons == [
            "run_python_script: no venv in skill 'sums' (`agent skills setup sums` makes one)",
            "run_python_script: there is no skill 'sum'; did you mean 'sums'? (known skills: sums)",
        ]


@pytest.mark.slow
async def test_a_rule_lets_the_same_script_through_and_no_other(tmp_path: Path) -> None:
    source = await tools_in(tmp_path / "tools")
    sayings = [call("run_python_script", SCRIPT), call("run_python_script", OTHER)]
    async with a_stage(
        tmp_path, sayings, settings=NAMED, approvals=OPEN, headless=True, tool_sources=(source,)
    ) as stage:
        (spec,) = (each for each in SKILL_SPECS if each.permission is Permission.SCRIPT)
        first = ScriptProposal(ProposalId("P-1"), spec.name, SCRIPT, 1, source="skill", spec=spec.digest)
        (rule,) = offered_rules(first)
        await stage.session.record(ApprovalChanged(Permission.SCRIPT, True, rule))
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert ending.exit_code is ExitCode.PARKED, ending
        approved = [each.by for each in stage.events if isinstance(each, ActionDecided)]
        assert f"policy:one script, {rule.tool}" in approved
        waiting = stage.state.waiting
        assert waiting is not None
        assert waiting.text == OTHER
