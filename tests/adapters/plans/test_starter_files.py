import asyncio
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from agent_workbench.adapters.plans.starter_files import exclude, init_repo
from agent_workbench.config.settings_loader import load_settings
from agent_workbench.config.trust_question import trust_question
from agent_workbench.core.errors import StorageError
from agent_workbench.core.plan import Plan
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand
from agent_workbench.core.settings import Settings
from tests.adapters.plans.plan_files import PATH, content, plan_file

WRITTEN = (
    ".agent.yml",
    "memory/.gitignore",
    "memory/plans/PLAN.yaml",
    "memory/scratch/.gitkeep",
    "memory/knowledge/.gitkeep",
    "memory/archive/.gitkeep",
)


async def test_a_repo_begins_with_files_that_can_be_read(tmp_path: Path) -> None:
    tests, lint = ProjectCommand("pytest -q", "pyproject.toml"), ProjectCommand("ruff check .", "ruff.toml")
    detected = DetectedProject(".venv/bin/python", (tests,), (lint,), (".venv", "node_modules"))
    assert await asyncio.to_thread(init_repo, tmp_path, detected) == WRITTEN
    settings = (await asyncio.to_thread(load_settings, tmp_path, {}, {})).settings
    assert (settings.python, settings.test_command) == (".venv/bin/python", "pytest -q")
    assert (settings.lint_command, settings.workspace.link) == ("ruff check .", (".venv", "node_modules"))
    assert await plan_file(tmp_path).read() == Plan()


def test_nothing_detected_is_nothing_set(tmp_path: Path) -> None:
    init_repo(tmp_path, DetectedProject())
    loaded = load_settings(tmp_path, {}, {})
    assert loaded.settings == Settings()
    assert trust_question(tmp_path, loaded).items == {}


def test_every_commented_key_is_a_key(tmp_path: Path) -> None:
    init_repo(tmp_path, DetectedProject())
    text = (tmp_path / ".agent.yml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(("#   ", "# ")) and _is_key(line)]
    (tmp_path / ".agent.yml").write_text("\n".join(line for line in lines if not line.strip().startswith("url:")))
    assert load_settings(tmp_path, {}, {}).settings.model.path == "~/models/coder.gguf"


def _is_key(line: str) -> bool:
    word, colon, _ = line.lstrip("# ").partition(":")
    return bool(colon) and word.replace("_", "").isalpha() and word.islower()


async def test_the_commented_task_is_a_task(tmp_path: Path) -> None:
    await asyncio.to_thread(init_repo, tmp_path, DetectedProject())
    lines = content(tmp_path).splitlines()
    task = "\n".join(line.removeprefix("# ") for line in lines if line.startswith("#   "))
    plan = await plan_file(tmp_path, f"tasks:\n{task}\n").read()
    assert [each.id for each in plan.tasks] == ["T-1"]


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".agent.yml").write_text("python: mine\n")
    assert init_repo(tmp_path, DetectedProject(python="theirs")) == WRITTEN[1:]
    assert (tmp_path / ".agent.yml").read_text() == "python: mine\n"
    (tmp_path / PATH).write_text("broken: [")
    assert init_repo(tmp_path, DetectedProject()) == ()
    assert content(tmp_path) == "broken: ["


def test_no_link_leads_the_files_out_of_the_repo(tmp_path: Path) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    repo.mkdir()
    outside.mkdir()
    (repo / ".agent.yml").symlink_to("../outside/new.yml")
    with pytest.raises(StorageError, match=", outside /"):
        init_repo(repo, DetectedProject())
    assert list(outside.iterdir()) == []


def test_git_ignores_sessions_alone_and_its_index_is_not_touched(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q")
    (tmp_path / "a").touch()
    git("add", "a")
    before = hashlib.sha256((tmp_path / ".git/index").read_bytes()).digest()
    init_repo(tmp_path, DetectedProject())
    assert hashlib.sha256((tmp_path / ".git/index").read_bytes()).digest() == before
    for folder in ("sessions/S", "index", "scratch", "knowledge"):
        (tmp_path / "memory" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "memory" / folder / "file").touch()
    others = git("ls-files", "--others", "--exclude-standard").split()
    assert "memory/scratch/file" in others
    assert "memory/knowledge/file" in others
    assert not [each for each in others if "sessions" in each or "index" in each]


def test_only_commands_that_start_are_written(tmp_path: Path) -> None:
    found = DetectedProject(
        tests=(
            ProjectCommand("pytest -q", "pyproject.toml"),
            ProjectCommand("npm test", "web/package.json", "web", "npm"),
        ),
        lint=(ProjectCommand("ruff check .", "ruff.toml", missing="ruff"),),
    )
    init_repo(tmp_path, found)
    lines = (tmp_path / ".agent.yml").read_text().splitlines()
    assert "test_command: pytest -q" in lines
    assert "# without (cd web && npm test): npm was not found" in lines
    assert "# lint_command: ruff check .  # ruff was not found; install it and remove the first #" in lines
    assert load_settings(tmp_path, {}, {}).settings.lint_command == ""


@pytest.mark.parametrize("before", [b"", b"a\r\n*.log", b"a\x0bb\n", "a\u2028b\x85c".encode(), b"\xff\n/memory"])
def test_patterns_of_the_user_stay_to_the_byte(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "info").mkdir()
    (file := tmp_path / "info/exclude").write_bytes(before)
    for _ in range(2):
        exclude(tmp_path, [".agent.yml", "memory/"])
    assert (
        file.read_bytes() == before + (b"\n" if before[-1:] not in {b"", b"\n"} else b"") + b"/.agent.yml\n/memory/\n"
    )
