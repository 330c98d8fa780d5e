"""Which changes of a diff need an approval of their own."""

from agent_workbench.core.patch.globs import matches_glob
from agent_workbench.core.patch.paths import fold_path
from agent_workbench.core.patch.values import FileOperation, FilePatch, Patch

SPECIAL_GLOBS = (
    # what git obeys
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.lfsconfig",
    # what the workbench obeys
    "**/.agent.yml",
    "**/.agent.yaml",
    "skills/**",
    "tasks/**",
    # what tells agents how to work
    "**/agents.md",
    "**/agents.override.md",
    "**/claude.md",
    "**/claude.local.md",
    # what sets the environment of programs
    "**/.env.*",
    "**/.envrc",
    # what a forge or a hook manager runs
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
)
USUAL_GLOBS = ("**/.env.example", "**/.env.sample", "**/.env.template")
"""Exceptions from the above: examples that hold no values."""


def special_paths(patch: Patch) -> tuple[str, ...]:
    """Return the paths that need an approval of their own, in the patch's order, each once.

    These are git's and the workbench's own settings, CI files, skills, tasks, files of instructions for agents and of
    environment variables, in any spelling that some disk takes for the same, and every file that is deleted or renamed
    (both its names).
    """
    found = (path for file in patch.files for path in (file.old_path, file.path) if _is_special(file, path))
    return tuple(dict.fromkeys(found))


def _is_special(file: FilePatch, path: str) -> bool:
    if file.operation in {FileOperation.DELETE, FileOperation.RENAME}:
        return True
    folded = fold_path(path)
    return _matches(folded, SPECIAL_GLOBS) and not _matches(folded, USUAL_GLOBS)


def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return any(matches_glob(path, each) for each in globs)
