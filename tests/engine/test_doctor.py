import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.plans.starter_files import init_repo
from agent_workbench.core.diagnostics import Finding, Health
from agent_workbench.core.errors import (
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    PlanError,
    RepoError,
    ShellError,
    ToolError,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.repo.project_commands import DetectedProject
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.settings import Permission, Settings
from agent_workbench.core.settings.models import ModelSettings
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.doctor import examine, examine_settings, examine_source
from agent_workbench.engine.runtime.tool_context import Ports
from tests.adapters.git.user import make_repo
from tests.engine.stage import a_stage, task
from tests.fakes.ports import FACTS, Hang, SayingModel

SETTINGS = Settings(test_command="cd . && grep -q x README.md", lint_command="sh lint.sh")


async def findings(ports: Ports, settings: Settings = SETTINGS, said: Settings | None = None) -> dict[str, Finding]:
    """Return what the doctor finds, by part; `said` where the repo says more than is trusted."""
    found = await examine(ports, settings, said or settings, "/logs/model.log")
    assert all(each.advice for each in found if each.health is not Health.GOOD), found
    return {each.part: each for each in found}


async def test_all_is_well(tmp_path: Path) -> None:
    async with a_stage(tmp_path, ["yes"]) as stage:
        found = await findings(stage.ports)
        assert {part: each.health for part, each in found.items()} == dict.fromkeys(
            ["repository", "plan", "tests", "test_command", "lint_command", "sandbox", "model", "context", "grammar"],
            Health.GOOD,
        )
        assert f"on main at {stage.user.head()[:10]}" in found["repository"].seen


async def test_what_could_be_better(tmp_path: Path) -> None:
    async with a_stage(tmp_path, ["no"], tasks=(task(accept=()),), holds=False) as stage:
        stage.model.facts = replace(FACTS, context_tokens=4096)
        stage.user.write("README.md", "changed\n")
        stage.user.write("fast.so", "compiled\n")
        found = await findings(stage.ports, Settings())
        assert {part for part, each in found.items() if each.health is Health.WARNING} == {
            *("checkout", "test_command", "extensions", "sandbox", "context", "grammar"),
        }
        assert found["checkout"].seen == "2 files are changed and not committed: README.md, fast.so"
        assert "'no'" in found["grammar"].seen


async def test_no_test_command_is_missed_where_each_task_has_tests_of_its_own(tmp_path: Path) -> None:
    over = replace(task("T-2", accept=()), status=TaskStatus.DONE)
    async with a_stage(tmp_path, ["yes"], tasks=(task(accept=("true",)), over)) as stage:
        assert "test_command" not in await findings(stage.ports, Settings())


async def test_programs_that_are_not_there_are_said(tmp_path: Path) -> None:
    settings = Settings(test_command="X=1 python3 -m no_such_module tests", lint_command="true; no-such-linter .")
    asked = task(accept=("no-such-checker --all", "./written-by-the-task", "python3 -m unittest"))
    over = replace(task("T-2", accept=("no-such-either",)), status=TaskStatus.DONE)
    async with a_stage(tmp_path, ["yes"], tasks=(asked, over)) as stage:
        found = await findings(stage.ports, settings)
        assert (found["test_command"].health, found["lint_command"].health) == (Health.BAD, Health.BAD)
        assert found["test_command"].seen.startswith("python3 -m no_such_module is not installed: ")
        assert found["lint_command"].seen == "no-such-linter is not installed: true; no-such-linter ."
        assert found["plan"].health is Health.WARNING
        assert found["plan"].seen == "no-such-checker is not installed (T-1: no-such-checker --all)"


async def test_a_program_that_an_earlier_one_makes_is_not_missed(tmp_path: Path) -> None:
    settings = Settings(test_command="true && ./made-by-it", lint_command="./not-there --all")
    async with a_stage(tmp_path, ["yes"], tasks=(task(),)) as stage:
        found = await findings(stage.ports, settings)
        assert found["test_command"].health is Health.GOOD
        assert found["lint_command"].health is Health.BAD


async def test_looking_for_programs_runs_nothing_of_the_repo(tmp_path: Path) -> None:
    start = dict.fromkeys(("sitecustomize.py", "mine.py", "src/mine/__init__.py"), "open('canary', 'w')")
    async with a_stage(tmp_path, ["yes"], start=start) as stage:
        settings = Settings(test_command="python3 -m mine", lint_command="./mine.py $(touch canary) `touch canary`")
        assert (await findings(stage.ports, settings))["test_command"].health is Health.GOOD
        assert not (stage.user.root / "canary").exists()


async def test_an_interpreter_of_the_repo_is_not_run(tmp_path: Path) -> None:
    asked = task(accept=("python -m no_such_module", ".venv/bin/python -m no_such_module", "no-such-checker"))
    async with a_stage(tmp_path, ["yes"], tasks=(asked,)) as stage:
        python = stage.user.root / ".venv/bin/python"
        stage.user.write(".venv/bin/python", "#!/bin/sh\ntouch canary\nexit 1\n")
        python.chmod(0o755)
        environment = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
        ports = replace(stage.ports, environment_for=lambda _: asyncio.sleep(0, environment))
        settings = Settings(test_command="python -m no_such_module")
        found = await findings(ports, settings)
        assert found["test_command"].health is Health.GOOD
        assert found["plan"].seen == "no-such-checker is not installed (T-1: no-such-checker)"
        assert not (stage.user.root / "canary").exists()


async def test_what_a_workspace_lacks_is_said(tmp_path: Path) -> None:
    module = make_repo(tmp_path / "module")
    async with a_stage(tmp_path, ["yes"] * 4) as stage:
        stage.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module.root), "vendor/sub")
        stage.user.commit("Add a submodule")
        found = await findings(stage.ports)
        assert (found["submodules"].health, found["submodules"].seen.endswith("vendor/sub")) == (Health.WARNING, True)
        assert "vendor/sub in workspace.link" in found["submodules"].advice
        found = await findings(stage.ports, linking("vendor/sub/"))
        assert not found.keys() & {"submodules", "links"}
        found = await findings(stage.ports, linking("vendor/sub", ".venv"))
        assert (found["links"].health, found["links"].seen.endswith(": .venv")) == (Health.WARNING, True)
        assert (await findings(stage.ports, linking("README.md")))["links"].health is Health.BAD


async def test_ignored_sources_are_said(tmp_path: Path) -> None:
    start = {"src/app.py": "x", ".gitignore": "_*.py\nnode_modules/\ngen/\n"}
    async with a_stage(tmp_path, ["yes"] * 2, start=start) as stage:
        for path in ("src/_version.py", "src/gen/api.py", "node_modules/x/x.py"):
            stage.user.write(path, "x")
        found = (await findings(stage.ports))["ignored"]
        assert (found.health, found.seen.endswith(": src/_version.py, src/gen")) == (Health.WARNING, True)
        assert "workspace.link: [src/_version.py, src/gen]" in found.advice
        assert "ignored" not in await findings(stage.ports, linking("src/_version.py", "src/gen"))


async def test_linked_folders_that_commands_cannot_write_to_are_said(tmp_path: Path) -> None:
    async with a_stage(tmp_path, ["yes"], start={".gitignore": "node_modules/\n"}) as stage:
        stage.user.write("node_modules/x.js", "x")
        stage.shell.overlays = False
        links = (await findings(stage.ports, linking("node_modules")))["links"]
        assert (links.health, "node_modules" in links.seen) == (Health.WARNING, True)


def linking(*names: str) -> Settings:
    return replace(SETTINGS, workspace=replace(SETTINGS.workspace, link=names))


async def test_a_detached_head_and_own_files(tmp_path: Path) -> None:
    async with a_stage(tmp_path, ["yes"]) as stage:
        await asyncio.to_thread(init_repo, stage.user.root, DetectedProject())
        found = await findings(stage.ports)
        assert found["repository"].health is Health.GOOD
        assert "checkout" not in found
        stage.git("checkout", "--quiet", "--detach")
        stage.model.sayings.append("yes")
        repository = (await findings(stage.ports))["repository"]
        assert (repository.health, "with a detached HEAD at" in repository.seen) == (Health.WARNING, True)


async def test_what_the_users_own_git_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    async with a_stage(tmp_path, ["yes"]) as stage:
        stage.user.write(".git/info/attributes", "README.md filter=lfs\n")
        for name, value in (("user.useConfigOnly", "true"), ("commit.gpgSign", "true"), ("filter.lfs.clean", "cat")):
            stage.git("config", name, value)
        found = await findings(stage.ports)
        assert "git config --global user.name" in found["author"].advice
        assert "commit.gpgSign" in found["commits"].seen
        assert found["filters"].seen == "1 file of the filter lfs, such as README.md"
        health = {part: found[part].health for part in ("author", "commits", "filters")}
        assert health == {"author": Health.BAD, "commits": Health.WARNING, "filters": Health.WARNING}


@pytest.mark.parametrize(
    ("facts", "part", "words"),
    [
        (replace(FACTS, context_tokens=0), "context", "does not say"),
        (replace(FACTS, takes_grammar=False), "grammar", "takes no grammar"),
    ],
)
async def test_what_an_endpoint_cannot_do(tmp_path: Path, facts: object, part: str, words: str) -> None:
    async with a_stage(tmp_path, ["yes"]) as stage:
        assert isinstance(facts, type(FACTS))
        stage.model.facts = facts
        far = replace(SETTINGS, model=ModelSettings(url="http://10.0.0.2:8080"))
        found = (await findings(stage.ports, far))[part]
        assert found.health is Health.WARNING
        assert words in found.seen


async def test_what_is_set_and_not_trusted_is_not_called_missing(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        stage.model.facts = ModelUnavailable("no model is configured", advice="set model.path in .agent.yml")
        said = Settings(test_command="pytest -q", model=ModelSettings(url="http://127.0.0.1:8080"))
        found = await findings(stage.ports, Settings(), said)
        assert "test_command" not in found
        assert found["model"].seen == "no model is configured; the one that is set is not trusted"
        assert "agent trust" in found["model"].advice


class Broken:
    """Every port at once, and every call of it fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def path(self) -> str:
        return "memory/plans/PLAN.yaml"

    async def inspect(self) -> object:
        raise self._error

    async def read(self) -> Plan:
        raise self._error

    async def observe(self) -> SandboxFacts:
        raise self._error


async def test_every_part_fails_for_itself(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        stage.model.facts = ModelUnavailable("nobody answers", advice="start it")
        broken = replace(
            stage.ports,
            workspaces=Broken(RepoError("no repo", advice="git init")),
            plans=Broken(PlanError("bad yaml", advice="line 3")),
            shell=Broken(ShellError("no sh", advice="install one")),
        )
        found = await findings(broken)
        assert {part: (each.health, each.seen) for part, each in found.items()} == {
            "repository": (Health.BAD, "no repo"),
            "plan": (Health.BAD, "bad yaml"),
            "tests": (Health.BAD, "no repo"),
            "sandbox": (Health.BAD, "no sh"),
            "model": (Health.BAD, "nobody answers"),
        }


async def test_a_plan_in_a_circle_is_said(tmp_path: Path) -> None:
    async with a_stage(tmp_path, ["yes"]) as stage:
        stage.plan.plan = Plan((Task(TaskId("T-1"), "It", depends_on=(TaskId("T-1"),)),))
        plan = (await findings(stage.ports))["plan"]
        assert (plan.health, "cycle" in plan.seen) == (Health.BAD, True)


async def test_python_that_is_not_there_is_said(tmp_path: Path) -> None:
    async def nowhere(_: str) -> Mapping[str, str]:
        raise ConfigError("there is no python at .venv/bin/python", advice="make it")

    async with a_stage(tmp_path, ["yes"]) as stage:
        tests = (await findings(replace(stage.ports, environment_for=nowhere)))["tests"]
        assert (tests.health, tests.seen) == (Health.BAD, "there is no python at .venv/bin/python")


async def test_a_server_of_ours_points_to_its_log(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [ModelRefused("bad", advice="mend it")]) as stage:
        settings = replace(SETTINGS, model=ModelSettings(path="x.gguf"))
        model = (await findings(stage.ports, settings))["model"]
        assert (model.health, model.advice) == (Health.BAD, "mend it; the server's log: /logs/model.log")


async def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        settings = replace(SETTINGS, model=ModelSettings(answer_seconds=0.05))
        ports = replace(stage.ports, model=SayingModel([Hang("y")]))
        model = (await findings(ports, settings))["model"]
        assert (model.health, model.seen) == (Health.BAD, "no answer within 0.05 s")


def test_settings_tell_who_said_them() -> None:
    assert examine_settings({}, {}, ())[0].seen == "all at their defaults"
    found = examine_settings({"python": "environment", "lint_command": "default"}, {}, ("python",))
    assert found[0].seen == "python (environment)"
    assert (found[1].part, found[1].health) == ("trust", Health.WARNING)
    assert found[1].seen == "1 setting is not trusted: python"
    assert examine_settings({}, {}, ("a", "b", "c", "d"))[1].seen == "4 settings are not trusted: a, b, c and 1 more"


def test_settings_of_one_file_are_told_together_and_in_full_where_two_say_something() -> None:
    origins = {
        **{f"endpoints.gpu.{key}": f".agent.yml:{line}" for line, key in enumerate(("url", "model", "api_key_env"), 4)},
        "model.url": "environment AGENT_MODEL__URL",
        "model.context_tokens": ".agent.yml:9",
    }
    told = "endpoints, model.context_tokens (.agent.yml); model.url (environment AGENT_MODEL__URL)"
    assert examine_settings(origins, {}, ())[0].seen == told


def test_settings_of_a_file_without_effect_are_named_with_the_file() -> None:
    unused = {"model.url": "/home/me/settings.yml:3", "ui.theme": "/home/me/settings.yml:5"}
    found = examine_settings({"model.path": ".agent.yml:1"}, unused, ())
    assert found[0].seen == "model (.agent.yml)"
    assert (found[1].part, found[1].health) == ("replaced", Health.GOOD)
    assert found[1].seen == "without effect here: model, ui (/home/me/settings.yml)"


class Server:
    """A source of tools that lists these, or fails."""

    name = "mcp:far"

    def __init__(self, *listed: ToolSpec, error: str = "") -> None:
        self.listed = listed
        self.error = error
        self.closed = False

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        if self.error:
            raise ToolError(self.error, advice="start it")
        return self.listed

    async def obstacle(self, tool: str, arguments: str) -> str:
        raise NotImplementedError

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True


async def test_each_server_of_tools_is_started_and_stopped() -> None:
    spec = ToolSpec("mcp__far__look", "looks", Permission.EXTERNAL, "{}", "mcp:far")
    good, partly, bad = Server(spec), Server(spec, replace(spec, name="no name")), Server(error="it fell over")
    found = [await examine_source(each) for each in (good, partly, bad)]
    assert [(each.part, each.health, each.seen) for each in found] == [
        ("mcp:far", Health.GOOD, "1 tool"),
        ("mcp:far", Health.WARNING, "2 tools, of which unusable: no name"),
        ("mcp:far", Health.BAD, "it fell over"),
    ]
    assert found[2].advice == "start it"
    assert all(each.closed for each in (good, partly, bad))


def test_servers_of_a_shared_file_that_are_left_out_are_named() -> None:
    (_, left_out) = examine_settings({}, {}, (), ("the server 'x' is left out: why",))
    assert (left_out.part, left_out.health, left_out.seen) == (
        "mcp",
        Health.WARNING,
        "the server 'x' is left out: why",
    )
