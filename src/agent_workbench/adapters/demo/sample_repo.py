"""Sample repo of the demo, written to a folder of its own and committed once."""

import os
import subprocess
import sys
from pathlib import Path

from agent_workbench.core.errors import RepoError
from agent_workbench.system.atomic_files import write_atomically
from agent_workbench.system.programs import find_program

CART = '''\
"""A shopping cart. Prices are whole cents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One product: its name, how many of it, and the price of one in cents."""

    name: str
    quantity: int
    cents: int


def total(lines: list[Line]) -> int:
    """Return the price of all lines in cents."""
    return sum(line.cents for line in lines)
'''

# unittest and dataclasses, so that the demo runs with any interpreter.
TEST_CART = """\
import unittest

from shop.cart import Line, total


class TotalTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_one_of_each_adds_up(self):
        self.assertEqual(total([Line("pen", 1, 120), Line("pad", 1, 450)]), 570)

    def test_the_quantity_counts(self):
        self.assertEqual(total([Line("pen", 3, 120), Line("pad", 1, 450)]), 810)
"""

PLAN = """\
# The plan of the demo. Edit it by hand as you like: comments and order are kept.
version: 1
goal: A cart that adds up, and gives discounts
tasks:
  - id: T-1
    description: Make the cart's total count quantities
    goal: The failing test in tests/test_cart.py passes.
    accept_tests:
      - python -m unittest tests/test_cart.py
    scope:
      allowed_write_globs: ["shop/**", "tests/**"]

  - id: T-2
    description: Give the cart a discount in percent
    goal: discounted(cents, percent) stands in shop/cart.py, with tests in tests/test_discount.py.
    accept_tests:
      - python -m unittest tests/test_discount.py   # written by this task
      - python -m unittest tests/test_cart.py
    depends_on: [T-1]   # not merged yet? then T-2 starts from its commit
    scope:
      allowed_write_globs: ["shop/**", "tests/**"]
"""

README = """\
# A shop

The sample repo of the workbench's demo. The model's answers in it are scripted; git, the tests, the server and the
journal are real.
"""

FILES = {
    "README.md": README,
    ".gitignore": "__pycache__/\n",
    "memory/.gitignore": "sessions/\nscratch/\n",
    "memory/plans/PLAN.yaml": PLAN,
    "shop/__init__.py": '"""A small shop."""\n',
    "shop/cart.py": CART,
    "tests/test_cart.py": TEST_CART,
}


def write_sample(folder: Path, model_path: Path) -> None:
    """Write the sample repo to `folder` (created, must be empty) and commit it; raise `RepoError` if git fails."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise RepoError(f"{folder} is not empty", advice="name another folder for the demo")
    for path, text in {**FILES, ".agent.yml": _settings(model_path)}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text.encode())
    _git(folder, "init", "--quiet", "--initial-branch=main")
    # The demo works for a user whom git does not know by name yet, and is signed by nobody.
    for name, value in (
        ("user.name", "Workbench demo"),
        ("user.email", "demo@agent-workbench.invalid"),
        ("commit.gpgSign", "false"),
    ):
        _git(folder, "config", name, value)
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", "A cart that forgets quantities")


def _settings(model_path: Path) -> str:
    return f"# The demo's settings.\nmodel:\n  path: {model_path}\n  context_tokens: 16384\npython: {sys.executable}\n"


def _git(folder: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    git = find_program("git", environment.get("PATH", ""))
    if git is None:
        raise RepoError("git was not found on the PATH", advice="install git 2.31 or newer")
    command = [git, "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RepoError(f"git {arguments[0]} failed: {done.stderr.strip()}", advice="install git 2.31 or newer")
