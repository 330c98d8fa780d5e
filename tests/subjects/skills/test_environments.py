"""Environments of skills: whose Python runs a script, and what of a repository's own environment counts."""

import sys
from pathlib import Path

import pytest

from agent_workbench.core.errors import ConfigError, ToolError
from agent_workbench.core.skills import SkillEntry, SkillOrigin
from agent_workbench.subjects.skills.environment_adapter import SkillEnvironments


@pytest.fixture
def environments(tmp_path: Path) -> SkillEnvironments:
    (tmp_path / "repo" / "skills" / "sums").mkdir(parents=True)
    return SkillEnvironments(tmp_path / "repo", tmp_path / "cache", tmp_path / "state")


def entry(tmp_path: Path, origin: SkillOrigin = SkillOrigin.REPO) -> SkillEntry:
    return SkillEntry("sums", "add", origin, str(tmp_path / "repo" / "skills" / "sums"))


def own(tmp_path: Path, name: str = "venv") -> Path:
    """An environment as `python -m venv` makes it, without its packages."""
    folder = tmp_path / "repo" / "skills" / "sums" / name
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix, 'bin')}\n")
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "lib").mkdir()
    (folder / "lib" / "module.py").write_text("VALUE = 1\n")
    return folder


@pytest.mark.parametrize("name", ["venv", ".venv"])
def test_the_user_s_own_environment_is_used_as_it_is(
    environments: SkillEnvironments, tmp_path: Path, name: str
) -> None:
    folder = own(tmp_path, name)
    found = environments.of(entry(tmp_path, SkillOrigin.USER))
    assert (found.folder, found.python, found.bytecode) == (folder, folder / "bin" / "python", None)


def test_a_repository_s_environment_counts_as_the_user_accepted_it(
    environments: SkillEnvironments, tmp_path: Path
) -> None:
    folder, skill = own(tmp_path), entry(tmp_path)
    with pytest.raises(ToolError, match="venv/ of the skill 'sums' is not accepted") as refused:
        environments.of(skill)
    assert refused.value.advice == "`agent skills setup sums` shows it and asks"
    environments.accept(environments.examine(skill, folder))
    (folder / "lib" / "__pycache__").mkdir()
    (folder / "lib" / "__pycache__" / "module.cpython-311.pyc").touch()
    found = environments.of(skill)
    assert (found.folder, found.bytecode) == (folder, environments.bytecode)
    for change in (
        lambda: (folder / "lib" / "module.py").write_text("VALUE = 2\n"),
        lambda: (folder / "lib" / "planted.pth").write_text("import os\n"),
        lambda: (folder / "lib" / "module.py").chmod(0o755),
        lambda: (folder / "lib" / "__pycache__" / "module.py").write_text("VALUE = 2\n"),
        lambda: (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix)}\n"),
    ):
        environments.accept(environments.examine(skill, folder))
        environments.of(skill)
        change()
        with pytest.raises(ToolError, match=r"is not accepted as it is now"):
            environments.of(skill)


def test_another_interpreter_is_another_content(environments: SkillEnvironments, tmp_path: Path) -> None:
    folder, skill = own(tmp_path), entry(tmp_path)
    environments.accept(environments.examine(skill, folder))
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").write_text("#!/bin/sh\n")
    (folder / "bin" / "python").chmod(0o755)
    with pytest.raises(ToolError, match=r"is not accepted as it is now"):
        environments.of(skill)


def test_an_environment_that_leads_into_the_repository_is_refused(
    environments: SkillEnvironments, tmp_path: Path
) -> None:
    folder, skill = own(tmp_path), entry(tmp_path)
    planted = tmp_path / "repo" / "tools"
    planted.mkdir()
    (folder / "lib" / "more").symlink_to(planted)
    with pytest.raises(ToolError, match=r"lib/more of the skill 'sums' leads to .*tools, inside the repository"):
        environments.of(skill)
    (folder / "lib" / "more").unlink()
    for home in (planted, "tools", ""):
        (folder / "pyvenv.cfg").write_text(f"home = {home}\n")
        with pytest.raises(ToolError, match=r"takes Python from .*inside the repository"):
            environments.of(skill)


def test_an_environment_without_interpreter(environments: SkillEnvironments, tmp_path: Path) -> None:
    folder = own(tmp_path)
    (folder / "bin" / "python").unlink()
    with pytest.raises(ToolError, match=r"is no interpreter"):
        environments.of(entry(tmp_path, SkillOrigin.USER))


def test_without_one_the_message_names_the_set_up(environments: SkillEnvironments, tmp_path: Path) -> None:
    skill = entry(tmp_path)
    assert environments.is_plain(Path(skill.folder))
    Path(skill.folder, "requirements.txt").write_text("pyyaml\n")
    assert not environments.is_plain(Path(skill.folder))
    with pytest.raises(ToolError, match=r"^no venv in skill 'sums'$") as refused:
        environments.of(skill)
    assert refused.value.advice == "`agent skills setup sums` makes one"
    Path(skill.folder, "requirements.txt").write_text("-e .\n")
    with pytest.raises(ConfigError, match=r"is not accepted"):
        environments.of(skill)
