"""Paths that need a second confirmation."""

import pytest

from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.paths import special_paths
from tests.core.patch.diffs import create, small


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".gitattributes",
            "sub/.gitattributes",
            ".gitmodules",
            ".GitModules",
            ".agent.yml",
            ".github/workflows/x.yml",
        ),
        *(".gitlab-ci.yml", ".circleci/config.yml", ".ci/build.sh", "Jenkinsfile", "azure-pipelines.yml"),
        *("skills/x/SKILL.md", "Skills/x/run.py", ".agent\u200d.yml", ".pre-commit-config.yaml", ".husky/pre-push"),
        *("AGENTS.md", "agents.MD", "sub/AGENTS.md", "a/b/AGENTS.override.md", "CLAUDE.md", "sub/claude.local.md"),
        *("tasks/app/T-1.yaml", "Tasks/main.yml", ".env.production", "web/.ENV.staging.local", ".envrc"),
        *("lefthook.yml", ".builds/test.yml", ".semaphore/semaphore.yml", ".vscode/tasks.json", ".devcontainer.json"),
        *("AGENT\u017f.md", "AG\u200dENTS.md"),
    ],
)
def test_settings_ci_and_skills_are_special(path: str) -> None:
    assert special_paths(parse_patch(small(path))) == (path,)
    assert special_paths(parse_patch(create(path))) == (path,)


@pytest.mark.parametrize(
    "path",
    [
        *("src/app.py", ".gitignore", "docs/skills.md", "github/x", "src/skills/x.py", "src/tasks/x.py", "tasks.py"),
        *(".env.example", "web/.env.sample", ".env.template", ".environment", "docs/AGENTS.md.txt", "my_agents.md"),
    ],
)
def test_others_are_not(path: str) -> None:
    assert special_paths(parse_patch(small(path))) == ()


def test_deletions_and_renames_are_special() -> None:
    diff = (
        f"{small('x')}--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        "diff --git a/old b/new\nrename from old\nrename to new\n"
    )
    assert special_paths(parse_patch(diff)) == ("gone", "old", "new")
