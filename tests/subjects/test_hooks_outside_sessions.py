"""Hooks told of what happens outside of a session."""

import asyncio
import json
from pathlib import Path

import pytest

from agent_workbench.bootstrap.repo_context import find_repo
from agent_workbench.bootstrap.stores import rule_store
from agent_workbench.config.trust_store import RepoTrust
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.subjects.worker.run_calls import tell_hooks
from tests.adapters.git.user import make_repo

FILE = """\
hooks:
  log: {{events: [task_failed], command: "cat >> {log}", unconfined: true}}
  bad: {{events: [task_failed], command: "exit 3", unconfined: true}}
  other: {{events: [task_done], command: "exit 4", unconfined: true}}
"""


async def test_trusted_hooks_are_told_and_their_failures_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    user = make_repo(tmp_path / "repo", {".agent.yml": FILE.format(log=log)})
    invocation = Invocation(user.root, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, {})
    assert await tell_hooks(await find_repo(invocation), HookPoint.TASK_FAILED, "a.yaml", "no YAML") == ""
    assert not log.exists(), "the repository is not trusted"

    repo = await find_repo(invocation)
    trust: RepoTrust = await repo.trust()
    assert await trust.question()
    await trust.accept()
    told = await tell_hooks(repo, HookPoint.TASK_FAILED, "a\x1b]52;c;eA==\x07.yaml", "no YAML")
    assert told == "hook bad failed at task_failed: exit code 3"
    read = json.loads(log.read_text())
    assert (read["event"], read["task"]["id"], read["reason"]) == (
        *("task_failed", "a\x1b]52;c;eA==\x07.yaml", "no YAML"),
    )


async def test_a_rule_that_was_added_meanwhile_stops_no_hook_and_no_skill_and_a_change_of_theirs_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = "hooks:\n  a: {events: [task_failed], command: sh a.sh >&2, unconfined: true}\n"
    user = make_repo(
        tmp_path / "repo",
        {".agent.yml": file, "a.sh": "true\n", "skills/calc/SKILL.md": "---\nname: calc\ndescription: x\n---\n"},
    )
    repo = await find_repo(Invocation(user.root, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, {}))
    trust: RepoTrust = await repo.trust()
    assert await trust.question()
    await trust.accept()

    hooks = await asyncio.to_thread(lambda: repo.hooks(repo.settings(trusted=True)))

    async def outcome() -> str:
        return (await hooks.run("a", HookPoint.TASK_FAILED, "{}", "")).failure

    assert await outcome() == ""
    rules = await asyncio.to_thread(rule_store, repo.root, repo.invocation, tmp_path / "sessions")
    await rules.keep(StoredRule(Rule(Permission.DIFF, paths=("src/**",)), RuleScope.REPO))
    assert "src/**" in (user.root / ".agent.yml").read_text()
    assert await outcome() == ""
    assert await asyncio.to_thread(repo.skills_trusted)
    (user.root / "skills" / "calc" / "SKILL.md").write_text("other")
    assert not await asyncio.to_thread(repo.skills_trusted)
    (user.root / "a.sh").write_text("touch canary\n")
    assert "changed since it was trusted" in await outcome()
    (user.root / "a.sh").write_text("true\n")
    assert await outcome() == ""
    assert await trust.revoke()
    assert "changed since it was trusted" in await outcome()
