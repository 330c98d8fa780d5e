"""Skills in the shell and in a task: listed, chosen, checked, and in the prompt of a trusted repo before the task."""

import json
from pathlib import Path

import pytest

from tests.e2e.calc import FINISH, calc_repo
from tests.e2e.machine import Done, Machine, write_files

PLAN = """\
version: 1
tasks:
  - id: T-1
    description: Validate the YAML of the settings, and name the wrong field
    scope: {allowed_write_globs: [calc.py], allowed_read_globs: ["*.py", "*.yml"]}
    constraints: {max_files_changed: 1, max_diff_bytes: 200}
  - {id: T-2, description: "Validate the YAML of the settings, and name the wrong field"}
"""
HOUSE = """\
---
name: house-yaml
description: How settings are spelled here.
metadata: {patterns: [yaml]}
---
Sort the keys.
"""
KEY = "sk-planted-by-a-test-0123456789"
ENV_FILE = f"LLM_API_KEY={KEY}\nLLM_MODEL_NAME=coder\n"
LENIENT = {"AGENT_APPROVALS__FINISH": "auto"}


def rows(done: Done) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_catalogue_in_the_shell(machine: Machine) -> None:
    repo = calc_repo(machine)
    listed = {str(row["name"]): row for row in rows(machine.agent("skills", "list", "--json", cwd=repo))}
    assert len(listed) >= 5
    assert all(row["domains"] and row["languages"] and row["tokens"] for row in listed.values() if not row["role"])
    assert "yaml-validation" in listed
    filters = ("--domain", "testing", "--domain", "implementation")
    chosen = machine.agent("skills", "choose", *filters, "--max-tokens", "1000", "--json", cwd=repo)
    assert "test-driven-development" in {row["name"] for row in rows(chosen) if row["chosen"]}
    assert sum(int(str(row["tokens"])) for row in rows(chosen) if row["chosen"]) <= 1000
    none = machine.agent("skills", "choose", *filters, "--max-tokens", "100", cwd=repo)
    assert (none.code, none.out) == (1, "")
    shown = machine.agent("skills", "show", "yaml-validation", "--json", cwd=repo)
    assert "yaml.safe_load" in str(rows(shown)[0]["text"])
    broken = "---\nname: broken\n---\nx\n"
    write_files(repo, {"skills/broken/SKILL.md": broken, ".env": "LLM_API_BASE_URL=nowhere\n"})
    assert machine.agent("plan", "check", cwd=repo).code == 0, "what is not trusted stops nothing"
    checked = machine.agent("skills", "check", cwd=repo)
    assert checked.code == 1
    assert "error: skills/broken/SKILL.md:2: 'description' is missing" in checked.out
    told = machine.agent("skills", "list", cwd=repo).out.splitlines()
    assert [line.partition(":")[0] for line in told if "consult-" in line] == ["for consultants alone"]
    assert any(line.startswith("searched: ") for line in told)


@pytest.mark.slow
def test_they_stand_in_the_prompt_from_a_trusted_repo_only(served: Machine) -> None:
    files = {"memory/plans/PLAN.yaml": PLAN, "settings.yml": "a: 1\n", ".env": ENV_FILE}
    repo = calc_repo(served, files | {".claude/skills/house-yaml/SKILL.md": HOUSE})
    refused = served.scripted({}, "run", "--task", "T-1", cwd=repo)
    assert (refused.code, "not trusted" in refused.err) == (4, True)
    assert "house-yaml" not in served.agent("skills", "list", cwd=repo).out
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    done = served.scripted(
        dict.fromkeys(("T-1", "T-2"), (FINISH, FINISH)), "run", "--all", "--json", cwd=repo, environ=LENIENT
    )
    assert done.code == 0, done.said
    first, second = done.of_kind("skills_chosen")
    assert {skill["name"] for skill in first["skills"]} == {"house-yaml", "yaml-validation"}
    assert first["skills"] == second["skills"]
    assert first["counted"]
    assert sum(skill["tokens"] for skill in first["skills"]) <= 2000
    receipt = served.agent("sessions", "show", "--prompt", "1", cwd=repo).out
    assert "skill yaml-validation  (" in receipt
    text = served.agent("sessions", "show", "--prompt", "1", "--text", cwd=repo).out
    assert text.index("Skill house-yaml") < text.index("Sort the keys.") < text.index("Task T-1:")
    for limit in ("You may read only: *.py, *.yml", "at most 1 file in all, at most 200 bytes in one diff"):
        assert limit in text
    assert served.agent("replay", "--rerun", cwd=repo).code == 0
    assert leaks(served.folder) == []


def leaks(folder: Path) -> list[Path]:
    """Return the files below a folder that hold the planted key, besides the `.env` of checkouts."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".env"]
    return [path for path in files if KEY.encode() in path.read_bytes()]
