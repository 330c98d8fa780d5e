"""Paths whose change needs a second confirmation: settings, CI, agent instructions, deletions, renames."""

from collections.abc import Collection

from agent_workbench.core.patch.paths import fold_path, matches_glob
from agent_workbench.core.patch.values import FileOperation, FilePatch, Patch

SPECIAL_GLOBS = (
    # configuration of git
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.lfsconfig",
    # configuration of the workbench
    "**/.agent.yml",
    "**/.agent.yaml",
    "**/agent-workbench/settings.yml",
    "**/agent-workbench/rules.yaml",
    "skills/**",
    "tasks/**",
    # instructions for agents
    "**/agents.md",
    "**/agents.override.md",
    "**/claude.md",
    "**/claude.local.md",
    # environment of programs
    "**/.env.*",
    "**/.envrc",
    # run by a forge or a hook manager
    ".github/**",
    ".gitlab/**",
    "**/.gitlab-ci.yml",
    "**/.gitlab-ci.yaml",
    ".gitea/**",
    ".forgejo/**",
    ".woodpecker/**",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".circleci/**",
    ".buildkite/**",
    ".ci/**",
    ".drone.yml",
    ".travis.yml",
    ".cirrus.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yml",
    "**/jenkinsfile",
    "**/jenkinsfile.*",
    ".pre-commit-config.yaml",
    ".husky/**",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".build.yml",
    ".builds/**",
    ".semaphore/**",
    # run by an editor that opens the folder
    ".vscode/**",
    ".devcontainer/**",
    ".devcontainer.json",
)
USUAL_GLOBS = ("**/.env.example", "**/.env.sample", "**/.env.template")
"""Exceptions from `SPECIAL_GLOBS`: templates without values."""


def special_paths(patch: Patch, also: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths that need a second confirmation, in the order of the patch and without duplicates.

    These are settings of git and of the workbench, CI files, skills, tasks, instructions for agents and environment
    files. Every spelling that some file system treats as the same name counts. Deleted and renamed files are special
    too; a rename has two paths. So are those of `also`.
    """
    paths = ((file, path) for file in patch.files for path in (file.old_path, file.path))
    found = (path for file, path in paths if path in also or _is_special(file, path))
    return tuple(dict.fromkeys(found))


def _is_special(file: FilePatch, path: str) -> bool:
    if file.operation in {FileOperation.DELETE, FileOperation.RENAME}:
        return True
    folded = fold_path(path)
    return _matches(folded, SPECIAL_GLOBS) and not _matches(folded, USUAL_GLOBS)


def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return any(matches_glob(path, each) for each in globs)
