"""The demo: a sample repository with a defect, and the answers of a scripted model to its tasks.

The answers of a task are in the order of its requests, reflexions included. For a rejected diff there is another one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from agent_workbench.core.errors import RepoError
from agent_workbench.system.atomic_files import write_atomically
from agent_workbench.system.programs import find_program

MODEL = Path(__file__).with_name("demo-model.gguf")
"""The model: random weights, as `scripts/tiny_model.py` writes them, for a server that is forced to answer."""

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

T1_READ = """\
Thought: The failing test is about quantities, so I start with the function that adds up the cart.
Action: read_file
{"path": "shop/cart.py"}"""

T1_WRONG = """\
Thought: The quantity is never used. I add it to the price of each line.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -14,4 +14,4 @@

 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
-    return sum(line.cents for line in lines)
+    return sum(line.cents + line.quantity for line in lines)
"""

T1_REFLEXION = """\
Reflexion: I added the quantity to the price, but three pens at 120 cents cost 360, not 123. Each line's price has to \
be multiplied by its quantity; the test's 810 is 3 * 120 + 1 * 450."""

T1_RIGHT = """\
Thought: A line costs its price times its quantity.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -14,4 +14,4 @@

 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
-    return sum(line.cents + line.quantity for line in lines)
+    return sum(line.cents * line.quantity for line in lines)
"""

T1_AT_ONCE = T1_RIGHT.replace("line.cents + line.quantity", "line.cents")

T1_FINISH = """\
Thought: All tests of the cart pass now.
Action: finish
{"summary": "A line of the cart now costs its price times its quantity; it used to be counted once."}"""

T1_SUMMARY = """\
Summary: The failing test wants each line of the cart to cost its price times its quantity.
total() in shop/cart.py adds up the lines; it is the only place that has to change.
Left to do: make total() multiply price and quantity, run the tests, finish."""

T2_SEARCH = """\
Thought: A discount belongs beside the total. I look at what stands there now.
Action: search_code
{"query": "total price of the cart"}"""

T2_NOTE = """\
Thought: Prices are whole cents, so the rounding has to be decided; I write it down.
Action: note
{"text": "Discounts round half up to whole cents."}"""

T2_DIFF = """\
Thought: I add the discount with its test; whole cents, rounded half up.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -15,3 +15,10 @@
 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
     return sum(line.cents * line.quantity for line in lines)
+
+
+def discounted(cents: int, percent: int) -> int:
+    \"\"\"Return a price less so many percent, rounded half up to whole cents.\"\"\"
+    if not 0 <= percent <= 100:
+        raise ValueError(f"a discount is 0 to 100 percent, not {percent}")
+    return (cents * (100 - percent) + 50) // 100
--- /dev/null
+++ b/tests/test_discount.py
@@ -0,0 +1,16 @@
+import unittest
+
+from shop.cart import discounted
+
+
+class DiscountTest(unittest.TestCase):
+    def test_a_tenth_off(self):
+        self.assertEqual(discounted(810, 10), 729)
+
+    def test_half_a_cent_rounds_up(self):
+        self.assertEqual(discounted(101, 50), 51)
+
+    def test_only_percentages(self):
+        for percent in (-1, 101):
+            with self.assertRaisesRegex(ValueError, "0 to 100"):
+                discounted(100, percent)
"""

T2_OTHERWISE = T2_DIFF.replace(
    "I add the discount with its test; whole cents, rounded half up.",
    "I write it another way: what comes off is rounded, so that half a cent stays in the price.",
).replace("(cents * (100 - percent) + 50) // 100", "cents - (cents * percent + 49) // 100")

T2_FINISH = """\
Thought: The new tests and the old ones pass.
Action: finish
{"summary": "discounted() takes a percentage off a price in whole cents, rounded half up; with tests for both."}"""

T2_REFLEXION = """\
Reflexion: The task is checked by tests/test_discount.py as well. Without that file, or with only a part of it, \
those checks cannot pass; what was left out has to come back."""

T2_SUMMARY = """\
Summary: The cart is to get a discount in percent, beside total() in shop/cart.py; prices are whole cents.
Left to do: write discounted(cents, percent), rounded half up, with its tests in tests/test_discount.py, and finish."""

CHAT_SEARCH = """\
Thought: I look for the function that adds up the cart.
Action: grep
{"text": "def total", "glob": "**/*.py"}"""

CHAT_ANSWER = """\
Answer: `total()` in `shop/cart.py` adds up the prices of the lines.

It forgets the **quantity** of each line; task `T-1` of the plan is about that."""

SCRIPTS = {
    "chat:chat": (CHAT_SEARCH, CHAT_ANSWER),
    "T-1": (T1_READ, T1_WRONG, T1_REFLEXION, T1_RIGHT, T1_FINISH),
    "T-1:1": (T1_AT_ONCE,),
    "T-2:2": (T2_OTHERWISE,),
    "T-1:reflexion": (T1_REFLEXION,),
    "T-2:reflexion": (T2_REFLEXION,),
    "T-1:summary": (T1_SUMMARY,),
    "T-2:summary": (T2_SUMMARY,),
    "T-2": (T2_SEARCH, T2_NOTE, T2_DIFF, T2_FINISH),
}


def write_sample(folder: Path) -> None:
    """Write the sample repo to `folder` (created, must be empty) and commit it; raise `RepoError` if git fails."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise RepoError(f"{folder} is not empty", advice="name another folder for the demo")
    for path, text in {**FILES, ".agent.yml": _settings()}.items():
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


def _settings() -> str:
    path, python = (json.dumps(str(each)) for each in (MODEL, sys.executable))
    return f"# The demo's settings.\nmodel:\n  path: {path}\n  context_tokens: 16384\npython: {python}\n"


def _git(folder: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    git = find_program("git", environment.get("PATH", ""))
    if git is None:
        raise RepoError("git was not found on the PATH", advice="install git 2.31 or newer")
    command = [git, "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RepoError(f"git {arguments[0]} failed: {done.stderr.strip()}", advice="install git 2.31 or newer")
