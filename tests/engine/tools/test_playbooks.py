"""The tools of playbooks in a task: when they are offered, check mode before the real run, lint after a failure."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    PatchApplied,
    PlaybookFinished,
    TaskStarted,
)
from agent_workbench.core.intents import StopAction
from agent_workbench.core.outcomes import Accepted
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.proposal_kinds import InfrastructureProposal
from agent_workbench.core.settings import PLAYBOOK_TOOLS, Approval, Approvals, Permission, Settings
from agent_workbench.core.task_estimates import Intent
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.engine.tools.playbook_tools import checked_request
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.reports.task_report import task_result
from tests.engine.front import in_front_of
from tests.engine.session.test_stop import held, running, survivors
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, task
from tests.fakes.ports import GivenSkills
from tests.fakes.runs import of_kind
from tests.subjects.test_playbooks import Site, make_site

SKILL = "ansible-playbooks"
FILES = {
    "answer.txt": "right\n",
    "deploy-kuma.yml": "# agent:service=kuma\n- name: Deploy kuma\n  hosts: web\n# stub: say did-it\n",
    "broken.yml": "- name: Break it\n  hosts: web\n# stub: fail\n",
    "writes.yml": "- hosts: web\n# stub: shell echo more > fetched.txt\n",
    "hangs.yml": "- hosts: web\n# stub: say begun\n# stub: shell setsid sleep 99 &\n# stub: wait 99\n",
    "inventory/prod": "[web]\nweb1\n",
    "ansible.cfg": "[defaults]\ncallback_plugins = evil\n",
}
ALL = Approvals(**{each.value: Approval.AUTO for each in Permission})  # type: ignore[arg-type]
NAMED = Settings(tools_allowed=("write_diff", "finish", *PLAYBOOK_TOOLS), approvals=ALL)


def run(playbook: str = "deploy-kuma.yml", mode: str = "check", **more: str) -> str:
    return call("run_playbook", json.dumps({"playbook": playbook, "mode": mode, **more}))


def with_playbooks(stage: Stage, folder: Path, *, skill: bool = True) -> Site:
    folder.mkdir()
    site = make_site(folder)
    skills = GivenSkills({SKILL: "# Playbooks"} if skill else {})
    stage.session.ports = replace(stage.session.ports, playbooks=site.playbooks(), skills=skills)
    return site


def infra(**changes: object) -> Task:
    return replace(task(), intent=Intent.INFRA, **changes)


def offered(stage: Stage) -> set[str]:
    (started,) = (each for each in stage.events if isinstance(each, TaskStarted))
    return {spec.name for spec in started.specs} & set(PLAYBOOK_TOOLS)


@pytest.mark.parametrize(
    ("words", "settings", "wanted"),
    [
        (task(), Settings(), 0),
        (replace(task(), description="deploy with ansible-playbooks"), Settings(), 4),
        (infra(), Settings(), 4),
        (replace(task(), applicable_skills=(SKILL,)), Settings(), 4),
        (infra(), Settings(approvals=replace(OPEN, infrastructure=Approval.DENY)), 0),
        (replace(infra(), intent=Intent.RESEARCH), NAMED, 1),
    ],
)
async def test_they_are_offered_to_tasks_that_the_skill_fits(
    tmp_path: Path, words: Task, settings: Settings, wanted: int
) -> None:
    approvals = replace(OPEN, infrastructure=settings.approvals.infrastructure)
    async with a_stage(
        tmp_path, [FINISH] * 9, tasks=(words,), settings=settings, approvals=approvals, headless=True
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        await run_unattended(stage.session, stage.recorder, (T1,))
        assert len(offered(stage)) == wanted


def ran(stage: Stage) -> list[PlaybookFinished]:
    return [each for each in stage.events if isinstance(each, PlaybookFinished)]


async def test_check_mode_comes_first_and_the_recap_stays_in_the_journal(tmp_path: Path) -> None:
    values = {"inventory": "inventory/prod", "limit": "web", "extra_vars": '{"version": "1.2"}'}
    sayings = [
        call("find_playbook", '{"words": "deploy kuma"}'),
        call("find_playbook", '{"words": "make coffee"}'),
        run(mode="apply", **values),
        run(**values),
        run(mode="apply", **{**values, "limit": "db"}),
        run(mode="apply", **values),
        FINISH,
    ]
    async with a_stage(tmp_path, sayings, tasks=(infra(),), settings=NAMED, approvals=ALL, start=FILES) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            check = await front.gate(Permission.INFRASTRUCTURE)
            assert front.now is not None
            shown = view_diff(front.now)
            shown_run = of_kind(InfrastructureProposal, check).playbook
            assert shown_run is not None
            assert shown_run.request.check
            notes = "\n".join(block.text for block in shown.notes)
            for part in (
                "deploy-kuma.yml",
                "inventory/prod",
                "Limit: web",
                '"version": "1.2"',
                "network",
                "ansible.cfg",
            ):
                assert part in notes
            assert "+# agent:service=kuma" in shown.diff
            await front.approve(Permission.INFRASTRUCTURE)
            real = await front.approve(Permission.INFRASTRUCTURE)
            shown_run = of_kind(InfrastructureProposal, real).playbook
            assert shown_run is not None
            assert not shown_run.request.check
            assert [host.host for host in shown_run.checked] == ["web1"]
            await front.over()
        assert [each.request.check for each in ran(stage)] == [True, False]
        assert [each.hosts[0].changed for each in ran(stage)] == [0, 1]
        assert all(each.lint is None for each in ran(stage))
        refused = [each.reason for each in stage.events if isinstance(each, ActionRejected)]
        assert len([each for each in refused if "not made in check mode" in each]) == 2
        told = [each.observation for each in stage.events if isinstance(each, ActionFinished)]
        assert any(each.startswith("deploy-kuma.yml: service kuma") for each in told)
        assert any("no playbook fits 'make coffee'" in each for each in told)
        by = {each.by for each in stage.events if isinstance(each, ActionDecided) and each.proposal_id == check.id}
        assert by == {"user"}


async def test_a_change_after_the_check_needs_another_one(tmp_path: Path) -> None:
    edit = "--- a/deploy-kuma.yml\n+++ b/deploy-kuma.yml\n@@ -4 +4 @@\n-# stub: say did-it\n+# stub: say more\n"
    sayings = [run(), call("write_diff", edit), run(mode="apply"), FINISH]
    async with a_stage(tmp_path, sayings, tasks=(infra(),), settings=NAMED, approvals=ALL, start=FILES) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.INFRASTRUCTURE)
            await front.over()
        assert [each.request.check for each in ran(stage)] == [True]


@pytest.mark.slow
async def test_a_failed_run_is_linted_and_stands_in_the_outcome(tmp_path: Path) -> None:
    sayings = [run("broken.yml"), run("broken.yml", "apply"), FINISH, FINISH]
    async with a_stage(tmp_path, sayings, tasks=(infra(),), settings=NAMED, approvals=ALL, start=FILES) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.INFRASTRUCTURE)
            real = await front.approve(Permission.INFRASTRUCTURE)
            shown_run = of_kind(InfrastructureProposal, real).playbook
            assert shown_run is not None
            assert shown_run.check_failed
            await front.over()
        lint = ran(stage)[-1].lint
        assert lint is not None
        assert [each.rule for each in lint.findings] == ["no-changed-when"]
        finished = [each for each in stage.events if isinstance(each, ActionFinished) and "PLAY RECAP" in each.output]
        assert [each.result for each in finished] == [ActionResult.FAILED] * 2
        assert "What ansible-lint finds, the most severe first:\nbroken.yml:3" in finished[0].observation
        result = task_result(stage.state, T1)
        assert result is not None
        assert [(each.playbook, each.failed, each.check) for each in result.playbooks] == [
            ("broken.yml", True, True),
            ("broken.yml", True, False),
        ]
        refused = [each.reason for each in stage.events if isinstance(each, ActionRejected)]
        assert [each.split(".yml failed")[0] for each in refused] == ["finish: the last run of broken"]
        assert result.playbooks[0].analysis_result.startswith("broken.yml:3 no-changed-when")


async def test_a_playbook_that_changed_after_it_was_shown_is_not_run(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [run(), FINISH, FINISH], tasks=(infra(),), settings=NAMED, approvals=ALL, start=FILES
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            shown = await front.gate(Permission.INFRASTRUCTURE)
            workspace = Path((await stage.session.workspace()).facts.path)
            await asyncio.to_thread((workspace / "deploy-kuma.yml").write_text, "- hosts: all\n# stub: say other\n")
            await front.approve(Permission.INFRASTRUCTURE)
            again = await front.gate(Permission.INFRASTRUCTURE)
            assert (
                again.id,
                of_kind(InfrastructureProposal, again).playbook != of_kind(InfrastructureProposal, shown).playbook,
            ) == (shown.id, True)
            await front.approve(Permission.INFRASTRUCTURE)
            await front.over()
        assert not ran(stage), "what was shown then is not what is approved in the task"
        told = [each.observation for each in stage.events if isinstance(each, ActionFinished)]
        assert any("deploy-kuma.yml is not as it was shown" in each for each in told)


async def test_the_user_stops_a_run_and_nothing_of_it_lives_on(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [run("hangs.yml")], tasks=(infra(),), settings=NAMED, approvals=ALL, start=FILES
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.INFRASTRUCTURE)
            assert await front.outcome(StopAction(await running(front, "begun"))) == Accepted()
            await front.until(held, "a pause")
        results = [each.result for each in stage.events if isinstance(each, ActionFinished)]
        assert ActionResult.STOPPED in results
        assert not ran(stage)
        assert not await asyncio.to_thread(survivors, tmp_path), "nothing lives on"


async def test_a_playbook_with_the_value_of_a_secret_is_not_run(tmp_path: Path) -> None:
    secrets = {"DEPLOY_TOKEN": "planted-token-value"}
    files = {**FILES, "deploy-kuma.yml": "- hosts: web\n  vars: {token: planted-token-value}\n"}
    async with a_stage(
        tmp_path, [run(), FINISH, FINISH], tasks=(infra(),), settings=NAMED, approvals=ALL, start=files, secrets=secrets
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            await front.over()
        assert not ran(stage)
        assert "policy:secrets" in {each.by for each in stage.events if isinstance(each, ActionDecided)}


@pytest.mark.parametrize("origin", [TaskOrigin.LOCAL, TaskOrigin.FORGE, TaskOrigin.DATABASE])
async def test_unattended_it_waits_whatever_is_open(tmp_path: Path, origin: TaskOrigin) -> None:
    asked = infra(origin=origin, accept_tests=())
    async with a_stage(
        tmp_path, [run()], tasks=(asked,), settings=NAMED, approvals=ALL, start=FILES, headless=True
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        ending = await run_unattended(stage.session, stage.recorder, (T1,))
        assert ending.exit_code is ExitCode.PARKED
        assert not ran(stage)
        waiting = stage.state.waiting
        assert waiting is not None
        assert waiting.kind is Permission.INFRASTRUCTURE


async def test_what_a_local_task_of_a_playbook_changes_is_put_back_and_proposed(tmp_path: Path) -> None:
    ask_diff = replace(ALL, diff=Approval.ASK)
    async with a_stage(
        tmp_path, [run("writes.yml"), FINISH], tasks=(infra(),), settings=NAMED, approvals=ask_diff, start=FILES
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.INFRASTRUCTURE)
            kept = await front.gate(Permission.DIFF)
            assert kept.paths == ("fetched.txt",)
            await front.reject(Permission.DIFF, "no")


async def test_a_scaffold_is_one_diff_and_nothing_else(tmp_path: Path) -> None:
    ask_diff = replace(ALL, diff=Approval.ASK)
    values = {"service": "My_App 2", "about": "Serves pages.", "package": "nginx", "unit": "nginx"}
    scaffold = call("scaffold_playbook", json.dumps(values))
    async with a_stage(
        tmp_path, [scaffold, scaffold, FINISH], tasks=(infra(),), settings=NAMED, approvals=ask_diff, start=FILES
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            made = await front.gate(Permission.DIFF)
            assert len(made.paths) == 6
            assert "deploy-my-app-2.yml" in made.paths
            assert all(line.startswith("--- /dev/null") for line in made.diff.splitlines() if line.startswith("--- "))
            assert not any(isinstance(each, PatchApplied) for each in stage.events)
            await front.approve(Permission.DIFF)
            await front.over()
        proposed = [each.proposal for each in stage.events if isinstance(each, ActionProposed)]
        assert len([each for each in proposed if each.kind is Permission.DIFF]) == 1
        assert any(
            "these files exist already" in each.reason for each in stage.events if isinstance(each, ActionRejected)
        )


async def test_a_lint_that_is_asked_for_is_a_command_at_the_gate(tmp_path: Path) -> None:
    approvals = replace(ALL, command=Approval.ASK)
    paths = ("../../etc/a.yml", "broken.yml")
    sayings = [*(call("lint_playbook", json.dumps({"playbook": each})) for each in paths), FINISH]
    async with a_stage(
        tmp_path, [*sayings, FINISH], tasks=(infra(),), settings=NAMED, approvals=approvals, start=FILES
    ) as stage:
        await asyncio.to_thread(with_playbooks, stage, tmp_path / "site")
        async with in_front_of(stage) as front:
            await front.start()
            waiting = await front.approve(Permission.COMMAND)
            assert (waiting.text, waiting.commands) == ("ansible-lint broken.yml", ("ansible-lint broken.yml",))
            await front.over()
        told = [each.observation for each in stage.events if isinstance(each, ActionFinished)]
        assert any(each.startswith("broken.yml:3 no-changed-when [idempotency, major]") for each in told)


HOSTILE = {
    "playbook": ("/etc/a.yml", "../a.yml", "-e@/etc/passwd.yml", "a.sh", ".git/a.yml", "a\x1b[2J.yml", "a\n.yml", ""),
    "inventory": ("/etc/hosts", "-a", "a;b,", "../x", "a b,", "~/hosts", ".git/config", "a" * 401),
    "limit": ("@/etc/passwd", "--become", "a b", "a;b", "$(id)", "a" * 401),
    "tags": ("-e@x", "a b", "a\tb", "{{ a }}"),
    "extra_vars": (
        *("@/etc/passwd", "a=b", "[1]", "7", '{"a b": 1}', '{"a": 1e999}', '{"a": 1, "a": 2}', "{" * 9_000),
        *('{"ansible_ssh_common_args": "-o ProxyCommand=id"}', '{"ANSIBLE_become_password": "x"}'),
        *('{"a": "{{ lookup(1) }}"}', '{"a": {"b": ["{% for %}"]}}', '{"a": "\\u007b\\u007b x }}"}', '{"a{{b": 1}'),
    ),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values])
def test_values_that_ansible_could_read_as_more_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        checked_request(**{"playbook": "site.yml", name: value})  # type: ignore[arg-type]


def test_values_have_one_form() -> None:
    made = checked_request(" site.yml ", "web1,[2001:db8::1],", "web:!db", "a,b", ' {"b" : 1, "a": "ü"} ', check=False)
    assert (made.playbook, made.extra_vars) == ("site.yml", '{"b": 1, "a": "ü"}')
    assert (made.inventory_path, checked_request("site.yml", "inventory/prod").inventory_path) == ("", "inventory/prod")
