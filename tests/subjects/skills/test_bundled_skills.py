"""The skills that ship are found in the package and in a checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

from agent_workbench.subjects.skills.folder_adapter import bundled_skills

PROBE = "from agent_workbench.subjects.skills.folder_adapter import bundled_skills; print(bundled_skills())"


def test_a_checkout_brings_its_own() -> None:
    found = bundled_skills()
    assert found is not None
    assert (found / "git-workflow" / "SKILL.md").is_file()


def test_an_installed_package_brings_what_was_built_in(tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "src" / "agent_workbench"
    package = tmp_path / "site" / "agent_workbench"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))

    def found() -> str:
        command = [sys.executable, "-c", PROBE]
        environment = {"PYTHONPATH": str(tmp_path / "site")}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    assert found() == "None"
    (package / "_data" / "skills").mkdir(parents=True)
    assert found() == str(package / "_data" / "skills")
