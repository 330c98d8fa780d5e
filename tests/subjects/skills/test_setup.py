"""Set-up of a skill's environment: what is asked, and a real installation from an index of ours."""

import asyncio
import json
import os
import zipfile
from pathlib import Path

import pytest

from agent_workbench.core.errors import ToolError
from agent_workbench.core.skills import SkillEntry, SkillOrigin
from agent_workbench.subjects.skills.environment_adapter import Requirements, SkillEnvironments
from agent_workbench.subjects.skills.setup_adapter import EnvironmentSetup, installed_packages
from tests.subjects.skills.test_script_run import Bench, make_bench

METADATA = "Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with one package, which pip is told of as a user tells it."""
    folder = tmp_path / "index" / "shout"
    folder.mkdir(parents=True)
    name = "shout-1.0-py3-none-any.whl"
    files = {
        "shout.py": "WORD = 'LOUD'\n",
        "shout-1.0.dist-info/METADATA": METADATA,
        "shout-1.0.dist-info/WHEEL": WHEEL,
    }
    with zipfile.ZipFile(folder / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        record = "".join(f"{path},,\n" for path in (*files, "shout-1.0.dist-info/RECORD"))
        wheel.writestr("shout-1.0.dist-info/RECORD", record)
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    for variable in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", folder.parent.as_uri())
    return folder.parent


@pytest.mark.slow
async def test_a_declared_package_is_shown_installed_and_imported(tmp_path: Path, index: Path) -> None:
    bench, _ = await asyncio.to_thread(make_bench, tmp_path)
    folder = bench.root / "skills" / "sums"
    (folder / "requirements.txt").write_text("shout>=1\n")
    skill, environments, setup = await asyncio.to_thread(_parts, tmp_path, bench)
    planned = await setup.plan(skill)
    place = environments.place(Requirements(("shout>=1",)))
    assert planned.asks
    assert planned.lines[:3] == (
        "1 package for the skill sums, from requirements.txt:",
        "  shout>=1",
        f"index url: {index.as_uri()}",
    )
    assert str(place) in planned.lines[-2]
    assert not place.exists(), "nothing happens before the answer"
    assert await setup.carry_out(planned) == ("shout 1.0",)
    assert not (await setup.plan(skill)).asks
    answer = await bench.run("import shout\nprint(shout.WORD, shout.__cached__)")
    assert f"LOUD {environments.bytecode}" in json.loads(answer.structured)["stdout"], answer.text
    (folder / "requirements.txt").write_text("shout>=2\n")
    assert "no venv in skill 'sums'" in (await bench.run("import shout")).text
    other = await setup.plan(skill)
    with pytest.raises(ToolError, match="No matching distribution found for shout>=2"):
        await setup.carry_out(other)
    assert (await setup.plan(skill)).asks, "a half-made environment does not count"


def _parts(tmp_path: Path, bench: Bench) -> tuple[SkillEntry, SkillEnvironments, EnvironmentSetup]:
    environments = SkillEnvironments(bench.root, tmp_path / "cache", tmp_path / "state")
    skill = SkillEntry("sums", "add", SkillOrigin.REPO, str(bench.root / "skills" / "sums"))
    environ = {name: value for name, value in os.environ.items() if name != "PATH"}
    return skill, environments, EnvironmentSetup(environments, {**environ, "PATH": "/usr/bin:/bin"}, bench.root)


async def test_credentials_of_an_index_are_not_shown(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:planted@example.org/simple")
    bench, _ = await asyncio.to_thread(make_bench, tmp_path)
    (bench.root / "skills" / "sums" / "requirements.txt").write_text("shout\n")
    skill, _, setup = await asyncio.to_thread(_parts, tmp_path, bench)
    planned = await setup.plan(skill)
    assert "index url: https://***@example.org/simple" in planned.lines
    assert "planted" not in "\n".join(planned.lines)


async def test_an_installer_inside_the_repository_is_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "repo" / "bin" / "uv"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\ntouch ran\n")
    planted.chmod(0o755)
    environments = SkillEnvironments(tmp_path / "repo", tmp_path / "cache", tmp_path / "state")
    path = {"PATH": f"{planted.parent}:/usr/bin:/bin"}
    setup = await asyncio.to_thread(EnvironmentSetup, environments, path, tmp_path / "repo")
    assert setup._uv != str(planted)


async def test_what_asks_for_nothing(tmp_path: Path) -> None:
    bench, _ = await asyncio.to_thread(make_bench, tmp_path)
    skill, environments, setup = await asyncio.to_thread(_parts, tmp_path, bench)
    planned = await setup.plan(skill)
    assert (planned.asks, planned.lines) == (
        False,
        ("the skill sums declares no packages; its scripts run without a set-up",),
    )
    await setup.make(Requirements())
    assert await asyncio.to_thread(installed_packages, environments.place(Requirements())) == ()
