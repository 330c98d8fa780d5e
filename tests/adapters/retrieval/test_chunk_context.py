"""The lines above a piece of code that explain it."""

import time

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.retrieval.passages import context_of

SOURCE = """import os
from shop.prices import (
    Price,
    Tax,
)
from shop.unused import nothing


class Cart(Base):
    kind = "cart"

    def add(
        self, item: Item
    ) -> None:
        if item.free:
            return
        self.items.append(Price(item))
"""
PYTHON = SOURCE.split("\n")


def context(lines: list[str], first: int, last: int, symbol: str, *, with_imports: bool = True) -> list[str]:
    """Return the context of lines that are numbered from 1."""
    return context_of(lines, first - 1, last - 1, symbol, with_imports=with_imports).split("\n")


def test_a_method_has_its_class_and_the_imports_it_uses() -> None:
    assert context(PYTHON, 12, 17, "Cart.add") == [
        *("from shop.prices import (", "    Price,", ")", "…", "class Cart(Base):", "…")
    ]


def test_the_middle_of_a_method_has_its_signature_and_no_condition_around_it() -> None:
    assert context(PYTHON, 16, 17, "Cart.add", with_imports=False) == [*("class Cart(Base):", "…", "    def add(", "…")]


def test_a_definition_at_the_top_level_has_no_context() -> None:
    assert context_of(PYTHON, 8, 16, "Cart", with_imports=False) == ""


def test_lines_right_below_the_signature_have_no_gap_before_them() -> None:
    lines = ["class A:", "    x = 1"]
    assert context(lines, 2, 2, "A") == ["class A:"]


def test_other_languages() -> None:
    java = [
        "import a.b.Shelf;",
        "import a.b.Rack;",
        "",
        "class Store {",
        "  int put(Shelf s) {",
        "    s.add();",
        "  }",
        "}",
    ]
    assert context(java, 5, 7, "Store.put") == ["import a.b.Shelf;", "…", "class Store {"]
    go = ["package store", "", "import (", '\t"fmt"', '\t"os"', ")", "", "func Put() {", "\tfmt.Println()", "}"]
    assert context(go, 8, 10, "Put") == ["import (", '\t"fmt"', ")", "…"]


def test_a_name_that_several_definitions_have_says_nothing_of_what_is_around() -> None:
    assert context_of(["class A:", "", "    def b(self): pass"], 2, 2, "A, c", with_imports=True) == ""


@given(st.lists(st.text(max_size=30), min_size=1, max_size=30), st.data())
def test_any_lines_have_a_bounded_context(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    found = context_of(lines, first, last, data.draw(st.text(max_size=9)), with_imports=True)
    assert found.count("\n") <= 20


def test_long_lines_and_files_are_read_in_bounded_time() -> None:
    lines = [
        "import " + "x " * 200_000,
        *["    " * (row % 50) + "import " + "(" * 3_000 for row in range(3_000)],
        "    x",
    ]
    started = time.thread_time()
    context_of(lines, len(lines) - 1, len(lines) - 1, "x", with_imports=True)
    assert time.thread_time() - started < 1
