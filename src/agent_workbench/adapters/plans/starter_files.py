"""Starter files of a repo (settings, plan, memory folders). Existing files are never changed."""

from collections.abc import Sequence
from pathlib import Path

from agent_workbench.adapters.plans.plan_renderer import render_text
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand, joined
from agent_workbench.core.settings import MEMORY_IGNORE
from agent_workbench.system.repo_files import change_inside

MAX_BYTES = 1_000_000
SETTINGS = ".agent.yml"
OWN = (SETTINGS, "memory/")
"""Names that the starter files add to the root of a checkout."""

PLAN = """\
# The plan: an ordered list of tasks. Edit it as you like: comments and order stay.
# A task looks like this (remove the # and put it under `tasks:` in place of `[]`):
#
#   - id: T-1
#     description: Say hello in the language of the user
#     goal: greet("Ada", "fr") returns "Bonjour, Ada"
#     accept_tests:
#       - pytest -q tests/test_greet.py
#     scope:
#       allowed_write_globs: ["src/**", "tests/**"]
#     status: pending
version: 1
tasks: []
"""


def missing_files(root: Path, *, whole: bool = False) -> tuple[str, ...]:
    """Return the starter files that are not there, unless a settings file is (`whole`: also then). Blocks."""
    if (root / SETTINGS).exists() and not whole:
        return ()
    return tuple(name for name in wanted_files(DetectedProject()) if not (root / name).exists())


def init_repo(root: Path, detected: DetectedProject) -> tuple[str, ...]:
    """Write missing starter files and return their paths relative to `root`; raise `StorageError`. Blocks.

    The git index is not changed: the user decides what to commit.
    """
    return tuple(name for name, text in wanted_files(detected).items() if _create(root, name, text))


def exclude(git_dir: Path, names: Sequence[str]) -> None:
    """Let git overlook these names at the root of the checkout, for this user alone; raise `StorageError`. Blocks."""

    def change(found: bytes | None) -> bytes | None:
        before = found or b""
        new = [line for line in (f"/{name}".encode() for name in names) if line not in before.splitlines()]
        ended = before if before.endswith(b"\n") or not before else before + b"\n"
        return ended + b"".join(line + b"\n" for line in new) if new else None

    change_inside(git_dir, "info/exclude", MAX_BYTES, change)


def wanted_files(detected: DetectedProject) -> dict[str, str]:
    """Return the starter files with their texts."""
    return {
        ".agent.yml": _settings(detected),
        "memory/.gitignore": MEMORY_IGNORE,
        "memory/plans/PLAN.yaml": PLAN,
        **{f"memory/{folder}/.gitkeep": "" for folder in ("scratch", "knowledge", "archive")},
    }


def _create(root: Path, name: str, text: str) -> bool:
    created = False

    def change(found: bytes | None) -> bytes | None:
        nonlocal created
        created = found is None
        return text.encode() if created else None

    change_inside(root, name, MAX_BYTES, change)
    return created


def _settings(detected: DetectedProject) -> str:
    link = ", ".join(render_text(each) for each in detected.link)
    return f"""\
# Settings of Agent Workbench for this repo. Every key is optional; `agent doctor` shows what is in force and why.

# The model: a file that the workbench serves, or the address of a running server. It differs from machine to machine,
# so `agent init` writes it into your own settings.yml; one named here replaces that of everybody who trusts this file.
# model:
#   path: ~/models/coder.gguf
#   url: http://127.0.0.1:8080
#   context_tokens: 16384   # without it computed from this machine's memory

# Several models by name; if one does not answer, the next is asked.
# endpoints: {{gpu: {{url: http://10.0.0.2:8080}}, laptop: {{path: ~/models/small.gguf}}}}
# roles: {{executor: [gpu, laptop]}}

# The interpreter for the tests, the tests, and the linter.
{_line("python", detected.python, ".venv/bin/python")}
{_commands("test_command", detected.tests, "pytest -q")}
{_commands("lint_command", detected.lint, "ruff check .")}

# Ignored files that the tests need; they are linked into the workspace of each task.
workspace:
  link: [{link}]

# What needs your approval (ask), needs none (auto), or is never done (deny).
# approvals:
#   diff: ask
#   check: ask
#   command: ask
#   commit: ask
#   merge: ask

# Limits at which a task fails.
# limits:
#   max_tool_calls_per_task: 30
#   max_reflexion_retries: 3
#   command_seconds: 120
"""


def _commands(key: str, commands: Sequence[ProjectCommand], example: str) -> str:
    """Return the line of a key, and a comment for each command that would not start."""
    absent = [each for each in commands if each.missing]
    if absent and len(absent) == len(commands):
        each = absent[0]
        note = f"{each.missing} was not found; install it and remove the first #"
        return f"# {key}: {render_text(each.from_root)}  # {note}"
    lines = [f"# without {each.from_root}: {each.missing} was not found" for each in absent]
    return "\n".join([_line(key, joined(commands), example), *lines])


def _line(key: str, value: str, example: str) -> str:
    return f"{key}: {render_text(value)}" if value else f"# {key}: {example}"
