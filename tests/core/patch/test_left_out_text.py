"""A new text that names only some definitions of its piece: the others stay as they were, in their places."""

from dataclasses import dataclass
from textwrap import indent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_workbench.core.errors import PartialRewrite
from agent_workbench.core.patch.left_out_text import is_heading, is_unwritten, with_left_out

HEADS = {  # A definition with its body, by language; `{}` is its name, then what it returns.
    "py": "# Gives {0}.\n@cache\ndef {0}(\n    a,\n):\n    b = 1\n\n    return {1}",
    "js": "/** Gives {0}.\n * @return it\n */\nfunction {0}(a) {{\n  return {1}\n}}",
    "rb": "def {0}(a)\n  {1}\nend",
    "go": "func (c *Cart) {0}() int {{\n\treturn {1}\n}}",
    "rs": "#[inline]\npub fn {0}() -> i32\n{{\n    {1}\n}}",
}


EVERY = frozenset(range(7))


@dataclass(frozen=True)
class Text:
    """What a file has, in order: definitions by their numbers; those of a class as a tuple."""

    groups: tuple[tuple[int, ...], ...]
    suffix: str

    def render(self, value: int, named: frozenset[int], other: int | None = None) -> list[str]:
        """Return the lines: what is named returns `value`, the rest returns `other` or is not there."""
        groups = [[(each, value if each in named else other) for each in group] for group in self.groups]
        parts = [self._group([(each, shown) for each, shown in group if shown is not None]) for group in groups]
        return "\n\n\n".join(part for part in parts if part).split("\n")

    def _group(self, shown: list[tuple[int, int]]) -> str:
        texts = [HEADS[self.suffix].format(f"f{number}", value) for number, value in shown]
        if self.suffix != "py" or not texts:
            return "\n\n\n".join(texts)
        bodies = (indent(text, "    ") for text in texts)
        return f"class C{self.first(shown[0][0])}:\n" + "\n\n".join(bodies)

    def first(self, number: int) -> int:
        return next(group[0] for group in self.groups if number in group)


@st.composite
def partial_texts(draw: st.DrawFn) -> tuple[Text, frozenset[int]]:
    """Draw a file, and which of its definitions an answer names: some, not all."""
    count = draw(st.integers(2, 7))
    cuts = sorted(draw(st.sets(st.integers(1, count - 1))))
    groups = tuple(tuple(range(a, b)) for a, b in zip([0, *cuts], [*cuts, count], strict=True))
    named = draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))
    return Text(groups, draw(st.sampled_from(sorted(HEADS)))), frozenset(named)


@given(partial_texts())
@settings(max_examples=300)
def test_what_an_answer_names_is_changed_and_the_rest_stays_in_its_place(drawn: tuple[Text, frozenset[int]]) -> None:
    text, named = drawn
    new = text.render(1, named)
    done, (repair,) = with_left_out("piece 1", "a", text.render(0, EVERY), new, whole=True)
    assert list(done) == text.render(1, named, 0)
    assert "left it out" in repair


CART = "class Cart:\n    def add(self):\n        pass\n\n    def total(self):\n        pass\n\n\ndef main():\n    pass"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("class Cart:\n    def add(self):\n        return 1", CART.replace("pass", "return 1", 1)),
        ("class Cart:\n    def total(self):\n        return 1\n\n\ndef main():\n    pass",
         CART.replace("total(self):\n        pass", "total(self):\n        return 1")),
        ("def main():\n    return 1", CART.replace("main():\n    pass", "main():\n    return 1")),
        # A new method stands in place of no function.
        (CART.replace("\n\ndef main():\n", "\n    def count(self):\n    "),
         CART.replace("\n\ndef main():\n", "\n    def count(self):\n        pass\n\n\ndef main():\n")),
        # As many other ones: they may stand in place of those that are gone.
        (CART.replace("Cart", "Basket").replace("add", "put").replace("total", "sum"), None),
        (CART.replace("add", "put").replace("total", "sum"), None),
        ("total = 3", None),
    ],
)  # fmt: skip
def test_a_definition_that_is_left_out_stays(new: str, expected: str | None) -> None:
    done, repairs = with_left_out("piece 1", "a.py", CART.split("\n"), new.split("\n"), whole=True)
    assert "\n".join(done) == (expected or new)
    assert bool(repairs) is (expected is not None)


def test_a_method_whose_class_is_indented_in_another_way_is_refused() -> None:
    new = ["class Cart:", "  def add(self):", "    return 1", "", "def main():", "  pass"]
    with pytest.raises(PartialRewrite, match="lost total"):
        with_left_out("piece 1", "a.py", CART.split("\n"), new, whole=True)


def test_a_function_within_a_rewritten_function_may_go() -> None:
    old = ["def total():", "    def one():", "        return 1", "    return one()"]
    new = ["def total():", "    return 1"]
    assert with_left_out("piece 1", "a.py", old, new, whole=False) == (new, ())


DESCRIBED = """\
class Cart:
    \"\"\"A cart.

    {}
    \"\"\"

    def add(self):
        return {}
"""


@pytest.mark.parametrize(
    "prose",
    ["type of the value is int", "function that", "class of things", "interface for it.", "module holds all carts"],
)
def test_prose_that_begins_as_a_definition_may_go(prose: str) -> None:
    old, new = DESCRIBED.format(prose, 0).split("\n"), DESCRIBED.format("Short.", 1).split("\n")
    assert with_left_out("piece 1", "a.py", old, new, whole=True) == (new, ())


@pytest.mark.parametrize(
    "line",
    [
        "fn from(value: i32)",
        "def to",
        "type Id chan int",
        "class of(Base):",
        "class b extends a with c {",
        "type T int",
    ],
)
def test_a_definition_with_an_odd_name_stays(line: str) -> None:
    old, new = ["def add(", "def sub(", line], ["def add(", "def sub("]
    assert with_left_out("piece 1", "a", old, new, whole=True)[0] == [*new, line]


BRANCHES = """\
import sys

def first():
    pass

if sys.platform == "linux":
    def fast():
        pass

    def slow():
        pass
else:
    def fast():
        pass

    def slow():
        pass

def last():
    pass
"""


@pytest.mark.parametrize(
    "gone", [("fast", "slow"), ("slow",), ("fast",)], ids=["both branches", "the last of each", "the first of each"]
)
def test_a_definition_in_a_branch_that_cannot_be_found_is_refused(gone: tuple[str, ...]) -> None:
    new = BRANCHES
    for name in gone:
        new = new.replace(f"    def {name}():\n        pass\n", "")
    with pytest.raises(PartialRewrite, match=f"lost {gone[0]}"):
        with_left_out("piece 1", "a.py", BRANCHES.split("\n"), new.split("\n"), whole=True)


def test_a_definition_in_a_branch_stays_beside_another_one_of_it() -> None:
    old = [
        "if SLOW:",
        "    def one():",
        "        pass",
        "",
        "    def two():",
        "        pass",
        "",
        "def last():",
        "    pass",
    ]
    new = [line.replace("pass", "return 1") for line in (*old[:4], *old[7:])]
    done, _ = with_left_out("piece 1", "a.py", old, new, whole=True)
    assert done == [*new[:3], *old[3:6], *new[3:]]


@pytest.mark.parametrize(
    ("text", "unwritten"),
    [
        ("def total(prices):\n    pass\n", True),
        ('"""Carts."""\nimport re\n\n\ndef total(prices):\n    """Add up."""\n    # soon\n    ...\n', True),
        ("class Cart:\n    def __init__(self, prices):\n        pass\n\n    def total(self):\n        pass\n", True),
        ("def node():\n    return 1\n\n\ndef add(node):\n    raise NotImplementedError\n", True),
        ("export function total(prices) {\n  throw new Error('Implement it');\n}\n", True),
        ("fn total(prices: &[i32]) -> i32 {\n    todo!()\n}\n", True),
        ("def total(prices):\n    return sum(prices)\n", False),
        ("def total(prices):\n    if prices:\n        pass\n", False),
        ("def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    pass\n", False),
        ("function a() {\n  throw new Error('not for you');\n}\n", False),
        ("def total(prices):\n    pass\n# a line\n" + "\n" * 400, False),
        ("PRICES = [1, 2]\n", False),
        ("", False),
    ],
)
def test_code_is_unwritten_where_half_of_its_functions_have_no_body(text: str, *, unwritten: bool) -> None:
    assert is_unwritten(text.splitlines()) is unwritten


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ('class Cart(Base):\n    """Prices.\n\n    def in words\n    """\n', True),
        ("@dataclass\nclass Cart:\n    # nothing\n", True),
        ('class Cart:\n    """Prices."""\n    __slots__ = ()\n', False),
        ("class Cart:\n    def total(self):\n", False),
        ("if cart:\n", False),
        ("", False),
    ],
)
def test_the_beginning_of_a_definition_alone_is_known(text: str, heads: bool) -> None:
    assert is_heading(text.split("\n")) is heads
