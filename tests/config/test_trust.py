import asyncio
import fcntl
import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from agent_workbench.config import trust_store
from agent_workbench.config.schema import setting_keys
from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.config.trust_question import TrustQuestion, trust_question, with_trust, without_untrusted
from agent_workbench.config.trust_store import RepoTrust, TrustStore
from agent_workbench.core.checks.language_servers import SERVER_NAMES
from agent_workbench.core.errors import StorageError, TrustError
from agent_workbench.core.settings import Approval, Settings
from agent_workbench.core.settings.extensions import InfrastructureSettings
from agent_workbench.core.settings.models import RoleSampling


def load(root: Path, file: str = "", environ: dict[str, str] | None = None) -> LoadedSettings:
    root.mkdir(exist_ok=True)
    (root / ".agent.yml").write_text(file)
    return load_settings(root, environ or {}, {})


def ask(root: Path, file: str = "") -> TrustQuestion:
    return trust_question(root, load(root, file))


def with_url(more: str) -> tuple[str, str]:
    """Return an endpoint with and without a key of its own; what stands in a place of its own does not hide it."""
    return f"endpoints: {{a: {{url: 'http://a', {more}}}}}", "endpoints: {a: {url: 'http://a'}}"


def with_program(more: str) -> tuple[str, str]:
    """Return a server with and without a key of its own."""
    return f"mcp_servers: {{a: {{command: a, {more}}}}}", "mcp_servers: {a: {command: a}}"


# For every key two values that have to be trusted, as the file spells them; none where no value has to be.
def with_hook(*entries: str) -> tuple[str, str]:
    """Return two files with a hook that has one of the entries beside what every hook has."""
    needed = {"command": "command: a", "events": "events: [task_done]"}
    first, second = ({**needed, each.partition(":")[0]: each} for each in entries)
    return f"hooks: {{a: {{{', '.join(first.values())}}}}}", f"hooks: {{a: {{{', '.join(second.values())}}}}}"


HOOK = {"hooks.a.command", "hooks.a.events"}
RISKY = {
    "model.path": ("model: {path: a}", "model: {path: b}"),
    "model.url": ("model: {url: 'http://a'}", "model: {url: 'http://b'}"),
    "model.name": ("model: {name: a}", "model: {name: b}"),
    "model.server": ("model: {server: a}", "model: {server: b}"),
    "model.context_tokens": ("model: {context_tokens: 99999}", "model: {context_tokens: 99998}"),
    "model.threads": ("model: {threads: 64}", "model: {threads: 63}"),
    "model.gpu_layers": ("model: {gpu_layers: 99}", "model: {gpu_layers: 98}"),
    "model.cache_type": ("model: {cache_type: q4_0}", "model: {cache_type: f16}"),
    "model.api_key_env": ("model: {api_key_env: A}", "model: {api_key_env: B}"),
    "model.answer_seconds": ("model: {answer_seconds: 9999}", "model: {answer_seconds: 9998}"),
    "model.answer_tokens": ("model: {answer_tokens: 99999}", "model: {answer_tokens: 99998}"),
    "endpoints.*.url": ("endpoints: {a: {url: 'http://a'}}", "endpoints: {a: {url: 'http://b'}}"),
    "endpoints.*.path": ("endpoints: {a: {path: a}}", "endpoints: {a: {path: b}}"),
    "endpoints.*.model": with_url("model: m"),
    "endpoints.*.server": with_url("server: llama"),
    "endpoints.*.context_tokens": with_url("context_tokens: 16384"),
    "endpoints.*.threads": with_url("threads: 2"),
    "endpoints.*.gpu_layers": with_url("gpu_layers: 2"),
    "endpoints.*.cache_type": with_url("cache_type: q8_0"),
    "endpoints.*.api_key_env": with_url("api_key_env: A"),
    "endpoints.*.dollars_per_million_tokens.input": with_url("dollars_per_million_tokens: {input: 0}"),
    "endpoints.*.dollars_per_million_tokens.output": with_url("dollars_per_million_tokens: {output: 0}"),
    "roles.planner": ("roles: {planner: [model]}", "roles: {}"),
    "roles.executor": ("roles: {executor: [model]}", "roles: {}"),
    "roles.reflexion": ("roles: {reflexion: [model]}", "roles: {}"),
    "roles.verifier": ("roles: {verifier: [model]}", "roles: {}"),
    "roles.skills.*": ("roles: {skills: {a: [model]}}", "roles: {}"),
    "cost_cap_daily": ("cost_cap_daily: 1", "cost_cap_daily: 1.5"),
    "hooks.*.command": with_hook("command: a", "command: b"),
    "hooks.*.events": with_hook("events: [task_done]", "events: [task_failed]"),
    "hooks.*.timeout_seconds": with_hook("timeout_seconds: 1", "timeout_seconds: 2"),
    "hooks.*.network": with_hook("network: true", "network: false"),
    "hooks.*.unconfined": with_hook("unconfined: true", "unconfined: false"),
    "python": ("python: a", "python: b"),
    "test_command": ("test_command: a", "test_command: b"),
    "lint_command": ("lint_command: a", "lint_command: b"),
    "language_servers": ("language_servers: [ruff]", "language_servers: [clangd]"),
    "tools_allowed": ("tools_allowed: [run_command]", "tools_allowed: [run_command, finish]"),
    "approvals.diff": ("approvals: {diff: auto}", "approvals: {diff: ask}"),
    "approvals.check": ("approvals: {check: auto}", "approvals: {check: ask}"),
    "approvals.command": ("approvals: {command: auto}", "approvals: {command: ask}"),
    "approvals.commit": ("approvals: {commit: auto}", "approvals: {commit: ask}"),
    "approvals.merge": ("approvals: {merge: auto}", "approvals: {merge: ask}"),
    "approvals.summary": ("approvals: {summary: auto}", "approvals: {summary: ask}"),
    "approvals.finish": ("approvals: {finish: auto}", "approvals: {finish: ask}"),
    "approvals.plan": ("approvals: {plan: auto}", "approvals: {plan: ask}"),
    "approvals.knowledge": ("approvals: {knowledge: auto}", "approvals: {knowledge: ask}"),
    "approvals.script": ("approvals: {script: auto}", "approvals: {script: ask}"),
    "approvals.external": ("approvals: {external: auto}", "approvals: {external: ask}"),
    "approvals.infrastructure": ("approvals: {infrastructure: auto}", "approvals: {infrastructure: ask}"),
    "approvals.rules": (
        "approvals: {rules: [{kind: command, commands: ['a; b']}]}",
        "approvals: {rules: [{kind: command, commands: [a, b]}]}",
    ),
    "limits.max_tool_calls_per_task": (
        "limits: {max_tool_calls_per_task: 31}",
        "limits: {max_tool_calls_per_task: 32}",
    ),
    "limits.max_reflexion_retries": ("limits: {max_reflexion_retries: 4}", "limits: {max_reflexion_retries: 5}"),
    "limits.consecutive_failure_threshold": (
        "limits: {consecutive_failure_threshold: 6}",
        "limits: {consecutive_failure_threshold: 7}",
    ),
    "limits.command_seconds": ("limits: {command_seconds: 121}", "limits: {command_seconds: 122}"),
    "memory.dir": ("memory: {dir: a}", "memory: {dir: b}"),
    "memory.plan": ("memory: {plan: a}", "memory: {plan: b}"),
    "retrieval.top_n": ("retrieval: {top_n: 9}", "retrieval: {top_n: 10}"),
    "retrieval.embeddings.provider": (
        "retrieval: {embeddings: {provider: server}}",
        "retrieval: {embeddings: {provider: none}}",
    ),
    "retrieval.embeddings.url": (
        "retrieval: {embeddings: {url: 'http://a'}}",
        "retrieval: {embeddings: {url: 'http://b'}}",
    ),
    "retrieval.embeddings.model": (
        "retrieval: {embeddings: {model: a}}",
        "retrieval: {embeddings: {model: b}}",
    ),
    "retrieval.embeddings.api_key_env": (
        "retrieval: {embeddings: {api_key_env: A}}",
        "retrieval: {embeddings: {api_key_env: B}}",
    ),
    "retrieval.embeddings.path": (
        "retrieval: {embeddings: {path: a}}",
        "retrieval: {embeddings: {path: b}}",
    ),
    "retrieval.chunker.max_tokens": (
        "retrieval: {chunker: {max_tokens: 401}}",
        "retrieval: {chunker: {max_tokens: 402}}",
    ),
    "workspace.link": ("workspace: {link: ['a, b']}", "workspace: {link: [a, b]}"),
    "skills.dirs": ("skills: {dirs: [a]}", "skills: {dirs: [b]}"),
    "skills.max_tokens": ("skills: {max_tokens: 2001}", "skills: {max_tokens: 2002}"),
    "skills.script_seconds": ("skills: {script_seconds: 31}", "skills: {script_seconds: 32}"),
    "skills.agents_md": ("skills: {agents_md: false}", "skills: {agents_md: true}"),
    "sandbox.network": ("sandbox: {network: true}", "sandbox: {network: false}"),
    "mcp_servers.*.command": ("mcp_servers: {a: {command: a}}", "mcp_servers: {a: {command: b}}"),
    **{
        f"mcp_servers.*.{name}": with_program(f"{name}: {value}")
        for name, value in {
            "args": "[a]",
            "env": "{A: b}",
            "read": "[a]",
            "write": "[a]",
            "network": "true",
            "unconfined": "true",
        }.items()
    },
    "mcp_servers.*.url": ("mcp_servers: {a: {url: 'http://a'}}", "mcp_servers: {a: {url: 'http://b'}}"),
    "mcp_servers.*.headers": (
        "mcp_servers: {a: {url: 'http://a', headers: {A: '${B}'}}}",
        "mcp_servers: {a: {url: 'http://a', headers: {A: '${C}'}}}",
    ),
    "forge.kind": ("forge: {kind: gitea}", "forge: {kind: forgejo}"),
    "forge.url": ("forge: {url: 'http://a'}", "forge: {url: 'http://b'}"),
    "forge.repo": ("forge: {repo: a/b}", "forge: {repo: a/c}"),
    "forge.label": ("forge: {label: agent}", "forge: {label: bug}"),
    "forge.users": ("forge: {users: [ada]}", "forge: {users: [bob]}"),
    "forge.token_env": ("forge: {token_env: A}", "forge: {token_env: B}"),
    "forge.report": ("forge: {report: [push]}", "forge: {report: [push, tag]}"),
    "forge.poll_seconds": ("forge: {poll_seconds: 60}", "forge: {poll_seconds: 61}"),
    "forge.plain_http": ("forge: {plain_http: false}", "forge: {plain_http: true}"),
    "worker.park_for": ("worker: {park_for: 1d}", "worker: {park_for: 2d}"),
    "worker.then": ("worker: {then: reject}", "worker: {then: keep}"),
    "worker.jobs": ("worker: {jobs: 2}", "worker: {jobs: 3}"),
    "worker.pause_below_percent": ("worker: {pause_below_percent: 10}", "worker: {pause_below_percent: 30}"),
    "worker.poll_seconds": ("worker: {poll_seconds: 5}", "worker: {poll_seconds: 6}"),
    "database.url_env": ("database: {url_env: A}", "database: {url_env: B}"),
    "database.remote": ("database: {remote: a}", "database: {remote: b}"),
    "ui.keys": ("ui: {keys: {approve: j}}", "ui: {keys: {approve: k}}"),
    "ui.review_context": ("ui: {review_context: false}", "ui: {review_context: true}"),
}
REFUSED = {
    *("ui.mode", "sandbox.unconfined", "sandbox.user", "worker.name", "worker.tags"),
    *("database.signing_key", "database.allowed_signers"),
    *(f"infrastructure.{name}" for name in InfrastructureSettings.__struct_fields__),
}
HARMLESS = {
    **{f"sampling.{name}": f"sampling: {{{name}: 1}}" for name in RoleSampling.__struct_fields__},
    **{
        f"sampling.{role}.{name}": f"sampling: {{{role}: {{{name}: 1}}}}"
        for role in ("planner", "executor", "reflexion")
        for name in RoleSampling.__struct_fields__
    },
    "approvals.read": "approvals: {read: ask}",
    "limits.reflexion": "limits: {reflexion: never}",
    "limits.review": "limits: {review: true}",
    "retrieval.exclude": "retrieval: {exclude: [a]}",
    "memory.summarise_threshold": "memory: {summarise_threshold: 9}",
    "memory.knowledge_tokens": "memory: {knowledge_tokens: 9}",
    "workspace.keep": "workspace: {keep: false}",
    "sandbox.require": "sandbox: {require: true}",
    "ui.theme": "ui: {theme: nord}",
    "ui.notify": "ui: {notify: [desktop]}",
    "ui.clipboard": "ui: {clipboard: false}",
}


def test_every_key_is_either_asked_about_or_known_to_be_harmless() -> None:
    assert set(RISKY) | set(HARMLESS) | REFUSED == set(setting_keys())


@pytest.mark.slow(quick=24)
@pytest.mark.parametrize("key", RISKY)
def test_a_change_of_anything_that_is_obeyed_asks_again(tmp_path: Path, key: str) -> None:
    none = ask(tmp_path)
    first, second = (ask(tmp_path, file) for file in RISKY[key])
    said = key.replace("*", "a")
    assert said in first.items
    beside = {"endpoints.a.url", "mcp_servers.a.command", "mcp_servers.a.url", *HOOK}
    assert {said} == set(first.items) - beside or said in beside
    assert any(line.startswith(f"{said}: ") for line in first.lines)
    assert len({none.digest, first.digest, second.digest}) >= 2
    assert none.digest != first.digest != second.digest


@pytest.mark.slow(quick=24)
@pytest.mark.parametrize("key", RISKY)
def test_what_is_not_trusted_is_not_obeyed(tmp_path: Path, key: str) -> None:
    assert without_untrusted(load(tmp_path, RISKY[key][0])).settings == without_untrusted(load(tmp_path)).settings


def test_no_list_of_language_servers_counts_unasked_where_the_user_chose_none(tmp_path: Path) -> None:
    every = f"language_servers: [{', '.join(SERVER_NAMES)}]"
    assert "language_servers" in ask(tmp_path, every).items
    assert not ask(tmp_path, "language_servers: []").items


@pytest.mark.parametrize("key", HARMLESS)
def test_what_is_harmless_is_obeyed_unasked(tmp_path: Path, key: str) -> None:
    loaded = load(tmp_path, HARMLESS[key])
    assert trust_question(tmp_path, loaded).items == {}
    assert without_untrusted(loaded).settings != without_untrusted(load(tmp_path)).settings


@pytest.mark.parametrize(
    "file",
    [
        "limits: {max_tool_calls_per_task: 3, command_seconds: 1}\nretrieval: {top_n: 2}",
        "approvals: {diff: deny, merge: deny}",
        "tools_allowed: [read_file]",
        "model: {context_tokens: 2048}",
    ],
)
def test_what_asks_for_less_is_obeyed_unasked(tmp_path: Path, file: str) -> None:
    loaded = load(tmp_path, file)
    assert trust_question(tmp_path, loaded).items == {}
    kept = without_untrusted(loaded).settings
    assert (kept.limits, kept.approvals) == (loaded.settings.limits, loaded.settings.approvals)
    assert (kept.tools_allowed, kept.model) == (loaded.settings.tools_allowed, loaded.settings.model)


def test_what_the_user_says_is_obeyed_in_an_untrusted_repo(tmp_path: Path) -> None:
    environ = {"AGENT_TEST_COMMAND": "mine", "LLAMA_SERVER_URL": "http://127.0.0.1:1", "AGENT_APPROVALS__DIFF": "auto"}
    loaded = load(tmp_path, "test_command: theirs\nlint_command: theirs\nmodel: {url: 'http://evil'}\n", environ)
    settings = without_untrusted(loaded).settings
    assert (settings.test_command, settings.lint_command) == ("mine", "")
    assert settings.model.url == "http://127.0.0.1:1"
    assert settings.approvals.diff is Approval.AUTO
    assert (
        "test_command: theirs (runs as the tests, in a sandbox without a question)"
        in trust_question(tmp_path, loaded).lines
    )


def test_a_repo_without_settings_and_skills_asks_nothing(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path, {}, {})
    question = trust_question(tmp_path, loaded)
    assert (question.items, question.lines) == ({}, ())
    assert TrustStore(tmp_path / "state").is_trusted(tmp_path, question)
    assert not (tmp_path / "state").exists()
    assert without_untrusted(loaded).settings.approvals == Settings().approvals


def test_two_values_that_look_alike_are_told_apart(tmp_path: Path) -> None:
    real, spelled = ask(tmp_path, 'test_command: "a\u202eb"'), ask(tmp_path, "test_command: 'a\\u202eb'")
    assert (
        real.lines == spelled.lines == ("test_command: a\\u202eb (runs as the tests, in a sandbox without a question)",)
    )
    assert real.digest != spelled.digest


def test_a_command_is_shown_whole(tmp_path: Path) -> None:
    command = "pytest" + " " * 3000 + "; curl evil"
    assert command in ask(tmp_path, f"test_command: '{command}'").lines[0]


def test_instructions_for_agents_are_asked_about_and_read_only_then(tmp_path: Path) -> None:
    nothing_asked = load(tmp_path)
    assert nothing_asked.settings.skills.agents_md
    assert not with_trust(tmp_path, nothing_asked).settings.skills.agents_md, "nobody was asked"
    (tmp_path / "AGENTS.md").write_text("Be nice.\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    question = trust_question(tmp_path, load(tmp_path))
    assert question.lines == ("text for the model: [AGENTS.md, CLAUDE.md]",)
    assert with_trust(tmp_path, load(tmp_path)).settings.skills.agents_md
    assert not without_untrusted(load(tmp_path)).settings.skills.agents_md
    (tmp_path / "AGENTS.md").write_text("Be nicer.\n")
    assert trust_question(tmp_path, load(tmp_path)).digest == question.digest, "the text permits nothing"
    assert trust_question(tmp_path, load(tmp_path, "skills: {agents_md: false}")).lines == (
        "skills.agents_md: false (leaves the repository's AGENTS.md files out of prompts)",
    )


class TestSkills:
    def question(self, root: Path) -> TrustQuestion:
        return trust_question(root, load_settings(root, {}, {}))

    def skill(self, root: Path) -> Path:
        folder = root / "skills" / "one"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("be good")
        return folder

    def test_every_change_of_a_skill_asks_again(self, tmp_path: Path) -> None:
        folder = self.skill(tmp_path)
        digests = [self.question(tmp_path).digest]
        (folder / "SKILL.md").write_text("be bad!")
        digests.append(self.question(tmp_path).digest)
        (folder / "SKILL.md").chmod(0o755)
        digests.append(self.question(tmp_path).digest)
        (folder / "SKILL.md").rename(folder / "OTHER.md")
        digests.append(self.question(tmp_path).digest)
        (folder / "run.py").write_text("")
        digests.append(self.question(tmp_path).digest)
        (folder / "run.py").unlink()
        digests.append(self.question(tmp_path).digest)
        assert len(set(digests)) == 5
        assert digests[3] == digests[5]
        assert self.question(tmp_path).lines[0].startswith("skill files in skills: 1 file, sha256 ")

    def test_what_a_link_leads_to_counts(self, tmp_path: Path) -> None:
        repo, outside = tmp_path / "repo", tmp_path / "outside"
        folder = self.skill(repo)
        outside.mkdir()
        (outside / "SKILL.md").write_text("a")
        (repo / "skills" / "two").symlink_to(outside)
        (folder / "loop").symlink_to(repo / "skills")
        (folder / "nowhere").symlink_to("missing")
        os.mkfifo(folder / "pipe")
        before = self.question(repo).digest
        assert before == self.question(repo).digest
        (outside / "SKILL.md").write_text("b")
        assert before != self.question(repo).digest

    @pytest.mark.parametrize("name", ["venv", ".venv"])
    def test_the_environment_of_a_skill_is_accepted_by_itself(self, tmp_path: Path, name: str) -> None:
        installed = self.skill(tmp_path) / name
        before = self.question(tmp_path)
        installed.mkdir()
        (installed / "pyvenv.cfg").touch()
        for number in range(2001):
            (installed / f"{number}.py").touch()
        assert self.question(tmp_path) == before

    def test_compiled_files_do_not_count(self, tmp_path: Path) -> None:
        compiled = self.skill(tmp_path) / "tools" / "__pycache__"
        compiled.parent.mkdir()
        before = self.question(tmp_path)
        compiled.mkdir()
        for number in range(2001):
            (compiled / f"{number}.cpython-311.pyc").touch()
        assert self.question(tmp_path) == before

    @pytest.mark.parametrize(
        "place",
        [
            "venv/helper.py",  # no environment: nobody is asked about it when a script runs
            "tools/venv/pyvenv.cfg",
            "tools/venv/helper.py",
            "__pycache__/helper.py",
            "__pycache__/helper.pyc",
            "tools/__pycache__/helper.py",
        ],
    )
    def test_what_a_script_can_import_counts_wherever_it_is(self, tmp_path: Path, place: str) -> None:
        file = self.skill(tmp_path) / place
        file.parent.mkdir(parents=True)
        file.write_text("good = 1")
        before = self.question(tmp_path).digest
        file.write_text("evil = 1")
        assert self.question(tmp_path).digest != before

    def test_of_two_environments_only_the_one_in_use_is_left_out(self, tmp_path: Path) -> None:
        folder = self.skill(tmp_path)
        for name in ("venv", ".venv"):
            (folder / name).mkdir()
            (folder / name / "pyvenv.cfg").touch()
        before = self.question(tmp_path)
        (folder / "venv" / "helper.py").touch()
        assert self.question(tmp_path) == before
        (folder / ".venv" / "helper.py").touch()
        assert self.question(tmp_path) != before

    def test_a_skill_with_the_name_of_such_a_folder_counts(self, tmp_path: Path) -> None:
        folder = self.skill(tmp_path).with_name("venv")
        before = self.question(tmp_path).digest
        folder.mkdir()
        (folder / "SKILL.md").write_text("be bad")
        assert self.question(tmp_path).digest != before

    def test_too_many_files_are_refused(self, tmp_path: Path) -> None:
        folder = self.skill(tmp_path)
        for number in range(2000):
            (folder / f"{number}.md").touch()
        with pytest.raises(TrustError, match="skills contains more than 2000 files"):
            self.question(tmp_path)

    def test_too_many_bytes_are_refused(self, tmp_path: Path) -> None:
        with (self.skill(tmp_path) / "big").open("wb") as file:
            file.truncate(50_000_001)
        with pytest.raises(TrustError, match="or 50000000 bytes"):
            self.question(tmp_path)

    @pytest.mark.parametrize("folder", ["skills", "memory/commands"])
    def test_links_that_lead_to_one_folder_a_billion_times_are_refused(self, tmp_path: Path, folder: str) -> None:
        for number in range(30):
            (tmp_path / f"x/{number}").mkdir(parents=True)
            for name in "ab":
                (tmp_path / f"x/{number}/{name}").symlink_to(f"../{number + 1}")
        (tmp_path / "x/30").mkdir()
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "deep").symlink_to(tmp_path / "x/0")
        with pytest.raises(TrustError, match=f"{folder} contains more than 2000 folders"):
            self.question(tmp_path)

    @pytest.mark.parametrize("folder", [".agents/skills", ".claude/skills"])
    def test_folders_of_other_agents_count_too(self, tmp_path: Path, folder: str) -> None:
        file = tmp_path / folder / "one" / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text("be good")
        before = self.question(tmp_path)
        assert before.lines[0].startswith(f"skill files in {folder}: 1 file, sha256 ")
        file.write_text("be bad!")
        assert self.question(tmp_path).digest != before.digest
        assert trust_question(tmp_path, load(tmp_path, "skills: {dirs: []}")).items.keys() == {"skills.dirs"}

    def test_prompts_count_as_skills_do(self, tmp_path: Path) -> None:
        load(tmp_path)
        assert self.question(tmp_path).lines == ()
        prompt = tmp_path / "memory/commands/fix.md"
        prompt.parent.mkdir(parents=True)
        prompt.write_text("fix it")
        before = self.question(tmp_path)
        assert before.lines[0].startswith("prompts in memory/commands: 1 file, sha256 ")
        prompt.write_text("fix it all")
        assert self.question(tmp_path).digest != before.digest

    def test_trust_in_prompts_is_trust_in_their_folder_as_it_was(self, tmp_path: Path) -> None:
        root, store = tmp_path / "repo", TrustStore(tmp_path / "state")
        loaded = load(root, "memory: {dir: notes}")
        for folder in ("memory", "notes"):
            (root / folder / "commands").mkdir(parents=True)
            (root / folder / "commands/fix.md").write_text(folder)
        trust = RepoTrust(root, loaded, store)

        async def accept() -> None:
            await trust.question()
            await trust.accept()

        assert not trust.covers_prompts("notes/commands")
        asyncio.run(accept())
        assert trust.covers_prompts("notes/commands")
        assert not trust.covers_prompts("memory/commands"), "it was not asked about"
        assert not trust.covers_prompts("gone/commands")
        (root / "notes/commands/new.md").write_text("new")
        assert not trust.covers_prompts("notes/commands")

    def test_skills_of_an_untrusted_repo_are_not_read(self, tmp_path: Path) -> None:
        self.skill(tmp_path)
        assert without_untrusted(load_settings(tmp_path, {}, {})).settings.skills.dirs == ()


class TestStore:
    def test_trust_lasts_until_something_changes(self, tmp_path: Path) -> None:
        repo, store = tmp_path / "repo", TrustStore(tmp_path / "state")
        question = ask(repo, "test_command: pytest\npython: python3\n")
        assert not store.is_trusted(repo, question)
        assert store.trusted_items(repo) is None
        store.trust(repo, question)
        assert store.is_trusted(repo, question)
        assert TrustStore(tmp_path / "state").is_trusted(
            repo, ask(repo, "# moved\n\npython: python3\ntest_command: pytest")
        )
        changed = trust_question(repo, load(repo, "test_command: evil\nlint_command: x\n"), store.trusted_items(repo))
        assert not store.is_trusted(repo, changed)
        assert changed.changes == ("test_command: pytest → evil", "lint_command: x (new)", "python: python3 (gone)")

    def test_trust_is_bound_to_the_place(self, tmp_path: Path) -> None:
        store = TrustStore(tmp_path / "state")
        question = ask(tmp_path / "a", "python: x")
        store.trust(tmp_path / "a", question)
        assert not store.is_trusted(tmp_path / "b", ask(tmp_path / "b", "python: x"))
        (tmp_path / "link").symlink_to("a")
        assert store.is_trusted(tmp_path / "link", question)

    def test_trust_can_be_revoked(self, tmp_path: Path) -> None:
        store, question = TrustStore(tmp_path / "state"), ask(tmp_path / "a", "python: x")
        store.trust(tmp_path / "a", question)
        assert store.revoke(tmp_path / "a")
        assert not store.revoke(tmp_path / "a")
        assert not store.is_trusted(tmp_path / "a", question)

    def test_only_the_user_reads_and_writes_it(self, tmp_path: Path) -> None:
        store, question = TrustStore(tmp_path / "state"), ask(tmp_path / "a", "python: x")
        store.trust(tmp_path / "a", question)
        file = tmp_path / "state" / "trust.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert sorted(each.name for each in file.parent.iterdir()) == ["trust.json", "trust.lock"]
        file.chmod(0o666)
        with pytest.raises(TrustError, match="can be written by others"):
            store.is_trusted(tmp_path / "a", question)

    @pytest.mark.parametrize(
        "content", ["", "[]", '{"version": 2, "repos": {}}', '{"version": 1, "repos": {"a": 1}}', "[" * 9999]
    )
    def test_a_broken_file_trusts_nothing_and_is_not_overwritten(self, tmp_path: Path, content: str) -> None:
        store, question = TrustStore(tmp_path), ask(tmp_path / "a", "python: x")
        file = tmp_path / "trust.json"
        file.write_text(content)
        file.chmod(0o600)
        with pytest.raises(TrustError, match=r"trust\.json"):
            store.is_trusted(tmp_path / "a", question)
        with pytest.raises(TrustError, match=r"trust\.json"):
            store.trust(tmp_path / "a", question)
        assert file.read_text() == content

    def test_a_lock_that_stays_taken_is_not_waited_for_without_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trust_store, "LOCK_SECONDS", 0.05)
        store, question = TrustStore(tmp_path), ask(tmp_path / "a", "python: x")
        with (tmp_path / "trust.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(StorageError, match="stayed locked by another process"):
                store.trust(tmp_path / "a", question)
        store.trust(tmp_path / "a", question)

    def test_two_writers_lose_nothing(self, tmp_path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        writers = [context.Process(target=trust_many, args=(tmp_path, name)) for name in "ab"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        repos = json.loads((tmp_path / "trust.json").read_text())["repos"]
        assert len(repos) == 40


def trust_many(folder: Path, name: str) -> None:
    store = TrustStore(folder)
    for number in range(20):
        store.trust(folder / f"{name}{number}", TrustQuestion({"python": "x"}, (), (), "digest"))
