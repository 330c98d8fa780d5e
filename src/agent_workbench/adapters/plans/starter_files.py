"""The files with which a repo begins to be worked on; none that is there already is touched."""

from pathlib import Path

from agent_workbench.adapters.plans.plan_renderer import render_text
from agent_workbench.adapters.plans.project_detection import Detected
from agent_workbench.system.repo_files import change_inside

MAX_BYTES = 1_000_000

PLAN = """\
# The plan: an ordered list of tasks. Edit it as you like: comments and order stay.
# A task looks like this (take the # away and put it under `tasks:` in place of `[]`):
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

IGNORED = """\
# Journals and the index stay on this machine; plans, notes and knowledge are yours to commit.
/sessions/
/index/
"""


def init_repo(root: Path, detected: Detected) -> tuple[str, ...]:
    """Write the files that are missing and return which, relative to `root`; raise `StorageError`. Blocks.

    The git index is left alone: what of this is committed is the user's choice.
    """
    return tuple(name for name, text in wanted_files(detected).items() if _create(root, name, text))


def wanted_files(detected: Detected) -> dict[str, str]:
    """Return the files a repo begins with and their texts."""
    return {
        ".agent.yml": _settings(detected),
        "memory/.gitignore": IGNORED,
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


def _settings(detected: Detected) -> str:
    link = ", ".join(render_text(each) for each in detected.link)
    return f"""\
# Settings of Agent Workbench for this repo. Every key is optional; `agent doctor` shows what is in force and why.

# The model: a file that the workbench serves by itself, or the address of a server that runs. LLAMA_SERVER_URL and
# AGENT_MODEL__URL in the environment are heard too.
# model:
#   path: ~/models/coder.gguf
#   url: http://127.0.0.1:8080
#   context_tokens: 16384

# Several of them by name, each asked where the one before does not answer (docs/settings.md).
# endpoints: {{gpu: {{url: http://10.0.0.2:8080}}, laptop: {{path: ~/models/small.gguf}}}}
# roles: {{executor: [gpu, laptop]}}

# What runs the tests, the tests, and the linter.
{_line("python", detected.python, ".venv/bin/python")}
{_command("test_command", detected.test_command, "pytest -q", detected)}
{_command("lint_command", detected.lint_command, "ruff check .", detected)}

# Things git ignores that the tests need; they are linked into the workspace of each task.
workspace:
  link: [{link}]

# What waits for you (ask), goes by itself (auto) or is never done (deny).
# approvals:
#   diff: ask
#   check: ask
#   command: ask
#   commit: ask
#   merge: ask

# Where a task ends, done or not.
# limits:
#   max_tool_calls_per_task: 30
#   max_reflexion_retries: 3
#   command_seconds: 120
"""


def _command(key: str, value: str, example: str, detected: Detected) -> str:
    if value not in detected.absent:
        return _line(key, value, example)
    program = value.split(maxsplit=1)[0]
    return f"# {key}: {render_text(value)}  # {program} was not found; install it and take the first # away"


def _line(key: str, value: str, example: str) -> str:
    return f"{key}: {render_text(value)}" if value else f"# {key}: {example}"
