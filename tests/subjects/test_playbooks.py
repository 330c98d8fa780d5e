"""Runs of playbooks with the scripts of the skill, in a real sandbox, above stubs of Ansible's programs."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from msgspec import Struct

from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.errors import ConfigError, ToolError
from agent_workbench.core.playbooks import HostRecap, PlaybookRequest, checked_values, read_recap
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings import SandboxSettings
from agent_workbench.core.settings.extensions import InfrastructureSettings
from agent_workbench.subjects.playbooks_adapter import AnsiblePlaybooks, AnsiblePrograms, RunBounds
from tests.playbooks import stub_programs

PASSWORD = "planted-vault-password"
HEAD = "- hosts: web\n  tasks: []\n"


class Site(Struct):
    """A user's home with keys, a repo, and its playbooks."""

    home: Path
    root: Path
    programs: AnsiblePrograms
    shells: tuple[SandboxedShell, SandboxedShell]
    trusted: bool = True

    def playbooks(self, settings: InfrastructureSettings | None = None, **environ: str) -> AnsiblePlaybooks:
        async def programs() -> AnsiblePrograms:
            return self.programs

        return AnsiblePlaybooks(
            settings or InfrastructureSettings(),
            {"HOME": str(self.home), **environ},
            *self.shells,
            RunBounds(str(self.root), os.environ["PATH"], (str(self.root / ".env"),)),
            programs,
            lambda: self.trusted,
        )

    async def run(
        self,
        *stub: str,
        settings: InfrastructureSettings | None = None,
        request: PlaybookRequest | None = None,
        on_output: Callable[[str], None] = lambda _: None,
        seconds: float = 30,
        **environ: str,
    ) -> CommandOutcome:
        lines = "".join(f"# stub: {line}\n" for line in stub)
        await asyncio.to_thread((self.root / "site.yml").write_text, HEAD + lines)
        made = self.playbooks(settings, **environ)
        return await made.run(request or PlaybookRequest("site.yml"), str(self.root), seconds, on_output)


def make_site(folder: Path) -> Site:
    home, root = folder / "home", folder / "repo"
    root.mkdir()
    (root / ".env").write_text("KEY=planted-env\n")
    (home / ".ssh").mkdir(parents=True)
    for name in ("deploy", "other"):
        (home / ".ssh" / name).write_text(f"planted-{name}-key\n")
    (home / ".ssh" / "known_hosts").write_text("web1 ssh-ed25519 AAAA\n")
    environ = {**os.environ, "HOME": str(home)}
    shells = tuple(SandboxedShell(SandboxSettings(network=each), str(root), environ) for each in (False, True))
    return Site(home, root, stub_programs(folder / "environment"), (shells[0], shells[1]))


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    made = await asyncio.to_thread(make_site, tmp_path)
    facts = await made.shells[1].observe()
    if not facts.holds:
        pytest.skip(f"machine lacks: a sandbox that holds ({facts.why})")
    return made


async def test_lines_are_shown_before_the_run_ends_and_the_recap_is_read(site: Site) -> None:
    shown: list[tuple[float, str]] = []
    began = time.monotonic()
    done = await site.run(
        "say first", "wait 1", "say last", on_output=lambda text: shown.append((time.monotonic() - began, text))
    )
    first = next(at for at, text in shown if "first" in text)
    last = next(at for at, text in shown if "last" in text)
    assert last - first > 0.8
    assert read_recap(done.output) == (HostRecap("web1", ok=2),)
    assert (done.exit_code, done.output.split("\n")[0]) == (0, "ARGV --diff --check")


async def test_a_failed_run(site: Site) -> None:
    done = await site.run("fail", request=PlaybookRequest("site.yml", check=False))
    assert (done.exit_code, read_recap(done.output)) == (2, (HostRecap("web1", ok=2, changed=1, failed=1),))


async def test_each_value_is_a_part_of_its_option(site: Site) -> None:
    request = PlaybookRequest(
        "site.yml", "web1,-e,", "@/etc/passwd", "--syntax-check", '{"a": "$(id) \'x\'"}', check=False
    )
    done = await site.run("shell cat /tmp/agent-playbook-*/extra_vars.json", request=request)
    argv, variables = done.output.split("\n")[:2]
    assert argv.startswith(
        "ARGV --diff --inventory=web1,-e, --limit=@/etc/passwd --tags=--syntax-check --extra-vars=@/tmp/"
    )
    assert json.loads(variables) == {"a": "$(id) 'x'"}


async def test_a_run_in_check_mode_leaves_nothing_to_the_next_one(site: Site) -> None:
    first = await site.run("shell ls /tmp")
    second = await site.run("shell ls /tmp", request=PlaybookRequest("site.yml", check=False))
    assert "--check" in first.output
    assert "--check" not in second.output
    folders = [
        line for done in (first, second) for line in done.output.split("\n") if line.startswith("agent-playbook-")
    ]
    assert len(set(folders)) == 2


async def test_only_the_named_key_is_seen_and_only_by_a_run(site: Site) -> None:
    look = f"shell cat ~/.ssh/* {site.home}/.ssh/* {site.root}/.env 2>&1; env"
    none = await site.run(look)
    assert "planted" not in none.output
    named = await site.run(look, settings=InfrastructureSettings(ssh_keys=("~/.ssh/deploy",)))
    assert "planted-deploy-key" in named.output
    assert "planted-other" not in named.output
    assert "planted-env" not in named.output
    assert f"-i {site.home}/.ssh/deploy -o IdentitiesOnly=yes" in named.output
    assert f"UserKnownHostsFile={site.home}/.ssh/known_hosts" in named.output
    for shell in site.shells:
        line = f"cat {site.home}/.ssh/deploy {site.home}/.ssh/known_hosts"
        seen = await shell.run(Command(line, str(site.root), 20, {}), lambda _: None)
        assert "planted" not in seen.output


async def test_passwords_are_in_no_argument_and_no_variable(site: Site) -> None:
    settings = InfrastructureSettings(vault_password_env="VAULT", become_password_env="BECOME")
    done = await site.run(
        "shell cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'",
        "shell printf 'en%s\\n' d",
        "shell stat -c %a /tmp/agent-playbook-*/vault",
        "shell cat /tmp/agent-playbook-*/vault",
        settings=settings,
        VAULT=PASSWORD,
        BECOME="planted-become",
    )
    processes, rest = done.output.split("\nend\n")
    assert "--vault-password-file=/tmp/agent-playbook-" in processes
    assert "--become-password-file=/tmp/agent-playbook-" in processes
    assert "planted" not in processes
    assert rest.startswith(f"600\n{PASSWORD}")


async def test_the_agent_is_reached_only_where_it_is_named(site: Site, tmp_path: Path) -> None:
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        code = f"import socket; s=socket.socket(1); s.connect('{path}'); print('reached')"
        call = f'shell python3 -c "{code}" 2>&1; echo $SSH_AUTH_SOCK'
        denied = await site.run(call, SSH_AUTH_SOCK=path)
        assert "reached\n" not in denied.output
        allowed = await site.run(call, settings=InfrastructureSettings(ssh_agent=True), SSH_AUTH_SOCK=path)
        assert f"reached\n{path}\n" in allowed.output
        shell = site.shells[1]
        line = call.removeprefix("shell ")
        assert "reached\n" not in (await shell.run(Command(line, str(site.root), 20, {}), lambda _: None)).output


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (InfrastructureSettings(ssh_keys=("~/.ssh/missing",)), "~/.ssh/missing is no file"),
        (InfrastructureSettings(ssh_keys=("relative",)), "relative is no file"),
        (InfrastructureSettings(ssh_agent=True), "SSH_AUTH_SOCK names no socket"),
        (InfrastructureSettings(vault_password_env="UNSET"), "UNSET is empty"),
    ],
)
async def test_what_is_named_and_not_there_is_said_before_anybody_is_asked(
    site: Site, settings: InfrastructureSettings, said: str
) -> None:
    assert said in await site.playbooks(settings).obstacle()
    with pytest.raises(ConfigError, match=said):
        await site.run(settings=settings)


async def test_nothing_runs_without_trust(site: Site) -> None:
    site.trusted = False
    playbooks = site.playbooks()
    assert "not trusted" in await playbooks.obstacle()
    for call in (
        playbooks.run(PlaybookRequest("site.yml"), str(site.root), 9, lambda _: None),
        playbooks.lint("site.yml", str(site.root), 9),
    ):
        with pytest.raises(ToolError, match="not trusted"):
            await call


async def test_a_run_writes_in_the_worktree_only(site: Site, tmp_path: Path) -> None:
    done = await site.run(f"shell touch {site.root}/inside {tmp_path}/outside {site.home}/outside /etc/outside; id -u")
    assert (site.root / "inside").exists()
    assert not (tmp_path / "outside").exists()
    assert not (site.home / "outside").exists()
    assert done.exit_code == 0


async def test_a_run_that_hangs_is_ended_with_all_it_started(site: Site) -> None:
    fork = "shell setsid sh -c 'while :; do touch alive; sleep 0.05; done' &"
    done = await site.run(fork, "say before", "wait 60", seconds=2)
    assert done.reason == "timed out after 2 s"
    assert "before" in done.output
    assert (site.root / "alive").exists()
    assert str(site.root) not in {each.info["cwd"] for each in psutil.process_iter(["cwd"])}


@pytest.mark.slow
async def test_a_flood_is_bounded(site: Site) -> None:
    done = await site.run("shell head -c 70000000 /dev/zero | tr '\\0' 'a' | fold -w 1000", seconds=60)
    assert len(done.output) < 9_000_000
    assert done.cut_bytes > 40_000_000


async def test_findings_come_with_category_and_reason_and_the_lint_has_no_keys(site: Site) -> None:
    await asyncio.to_thread((site.root / "site.yml").write_text, HEAD)
    report = await site.playbooks(InfrastructureSettings(ssh_keys=("~/.ssh/missing",))).lint(
        "site.yml", str(site.root), 30
    )
    assert report.text.startswith(
        "site.yml:3 no-changed-when [idempotency, major] Commands should not change things. (a"
    )


async def test_a_lint_that_says_something_else_is_a_problem(site: Site) -> None:
    lint = site.programs.environment / "bin" / "ansible-lint"
    await asyncio.to_thread(lint.write_text, "#!/bin/sh\necho '\x1b[2Jbroken' >&2; exit 3\n")
    report = await site.playbooks().lint("site.yml", str(site.root), 30)
    assert report.problem.startswith("exit code 3: ")
    assert "\x1b" not in report.text
    await asyncio.to_thread(lint.write_text, "#!/bin/sh\nsleep 60\n")
    assert "timed out after 1 s" in (await site.playbooks().lint("site.yml", str(site.root), 1)).problem


@pytest.mark.parametrize("values", [{"package": "nginx", "unit": "nginx.service"}, {}])
async def test_the_six_templates_are_yaml(site: Site, values: dict[str, str]) -> None:
    import yaml

    given = checked_values("My_App 2", "Serves: pages #1", **values)
    rendered = await site.playbooks().render({**given, "playbook": "deploy-my-app-2.yml"})
    assert set(rendered) == {"playbook.yml", "tasks.yml", "handlers.yml", "defaults.yml", "meta.yml", "README.md"}
    read = {name: yaml.safe_load(text) for name, text in rendered.items() if name.endswith(".yml")}
    assert read["playbook.yml"] == [{"name": "Deploy my-app-2", "hosts": "all", "roles": [{"role": "my_app_2"}]}]
    assert read["defaults.yml"] == {
        "my_app_2_package": values.get("package", ""),
        "my_app_2_unit": values.get("unit", ""),
    }
    assert read["meta.yml"]["galaxy_info"]["role_name"] == "my_app_2"
    assert all(task["name"] for name in ("tasks.yml", "handlers.yml") for task in read[name])
    assert "# agent:service=my-app-2\n" in rendered["playbook.yml"]
    assert all(text.endswith("\n") and "\n\n\n" not in text and "{%" not in text for text in rendered.values())


async def test_a_missing_value_is_an_error(site: Site) -> None:
    with pytest.raises(ToolError, match="the templates were not rendered: exit code 1"):
        await site.playbooks().render({"service": "a"})
