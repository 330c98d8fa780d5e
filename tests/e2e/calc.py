"""A small repository of somebody's, and what a model says that does its task well or badly."""

from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from tests.e2e.machine import Machine

CALC = '''\
"""Sums."""


def add(left: int, right: int) -> int:
    return left - right
'''
RIGHT = CALC.replace("left - right", "left + right")
TEST_CALC = """\
from calc import add

assert add(2, 3) == 5, "two and three"
"""
PLAN = """\
# My plan; it is mine.
version: 1
tasks:
  - id: T-1   # the first of all
    description: Make add() add
    goal: add() returns the sum.   # so the model says when it is done
    accept_tests:
      - python test_calc.py   # quick
"""
FILES = {
    "calc.py": CALC,
    "test_calc.py": TEST_CALC,
    "memory/plans/PLAN.yaml": PLAN,
    "memory/.gitignore": "sessions/\n",
    ".gitignore": "__pycache__/\n",
}
FINISH = 'Thought: All is done.\nAction: finish\n{"summary": "add() adds now."}'
REFLEXION = "Reflexion: That was not addition; the sign has to be a plus."


def diff_step(before: Mapping[str, str], after: Mapping[str, str], thought: str = "I change it.") -> str:
    """Return the answer that makes files what `after` says."""
    return f"Thought: {thought}\nAction: write_diff\n{diff_of(before, after)}"


def diff_of(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a unified diff of files that are changed or new."""
    pieces = []
    for path, text in after.items():
        old = before.get(path)
        start = "/dev/null" if old is None else f"a/{path}"
        lines = unified_diff((old or "").splitlines(True), text.splitlines(True), start, f"b/{path}")
        pieces.append("".join(lines))
    return "".join(pieces)


GOOD = (diff_step({"calc.py": CALC}, {"calc.py": RIGHT}), FINISH)
SCRIPTS = {"T-1": GOOD}


def calc_repo(machine: Machine, files: Mapping[str, str] | None = None) -> Path:
    """Make the repository, with other files besides or instead."""
    return machine.new_repo("calc", {**FILES, **(files or {})})
