"""Docstrings in a rewritten piece: shown by their first lines, kept where the new text has no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.errors import PartialRewrite
from agent_workbench.core.patch.docstrings import short_functions, with_kept_docstrings, with_short_docstrings

LONG = '''\
class Cart:
    """
    Prices in cents.

    >>> Cart([1]).total()
    1
    """

    @cached
    async def total(
        self,
        prices: list[int] = (),  # of all: those given
    ) -> int:

        r"""Sum of the prices.

        >>> total([])
        0
        """
        return 1

    def other(self):
        """Two
        lines."""
        return """
        def inner():
        """

    def short(self): return 1
'''
SHORT = '''\
class Cart:
    """Prices in cents. …"""

    @cached
    async def total(
        self,
        prices: list[int] = (),  # of all: those given
    ) -> int:

        r"""Sum of the prices. …"""
        return 1

    def other(self):
        """Two
        lines."""
        return """
        def inner():
        """

    def short(self): return 1
'''
FIRST = "Sum of the prices. …"


def kept(new: str) -> tuple[str, tuple[str, ...]]:
    lines, names = with_kept_docstrings(LONG.split("\n"), new.split("\n"))
    return "\n".join(lines), names


def test_long_docstrings_are_their_first_lines() -> None:
    assert "\n".join(with_short_docstrings(LONG.split("\n"))) == SHORT


def test_what_was_shown_short_is_whole_again() -> None:
    body, mended = "return 1\n\n    def other", "return sum(prices)\n\n    def other"
    assert kept(SHORT.replace(body, mended)) == (LONG.replace(body, mended), ())


@pytest.mark.parametrize("written", ["Sum of the prices.", "Sum of the prices. ...", "Sum of the prices.\n        "])
def test_a_model_writes_the_short_form_in_its_own_way(written: str) -> None:
    told = () if written.endswith("...") else ("total",)
    assert kept(SHORT.replace(FIRST, written)) == (LONG, told)


def test_a_docstring_that_is_left_out_stays_and_is_told() -> None:
    text, names = kept(SHORT.replace(f'\n        r"""{FIRST}"""', ""))
    above = LONG.replace(':\n\n        r"""', ':\n        r"""')
    assert (text, names) == (above.replace('"""\n        return 1', '"""\n\n        return 1'), ("total",))


def test_a_docstring_that_says_something_else_is_meant() -> None:
    text, names = kept(SHORT.replace(FIRST, "Sum of the prices in cents."))
    assert (names, 'Sum of the prices in cents."""' in text, "total([])" in text) == ((), True, False)


PROPERTY = '''\
    @property
    def total(self):
        """Sum.

        In cents.
        """
        return 1

    @total.setter
    def total(self, value):
        self.value = value
'''


def test_a_docstring_goes_to_its_own_one_of_two_definitions_of_a_name() -> None:
    short = with_short_docstrings(PROPERTY.split("\n"))
    assert with_kept_docstrings(PROPERTY.split("\n"), short) == (PROPERTY.split("\n"), ())
    # The setter is left out, and put back later.
    assert with_kept_docstrings(PROPERTY.split("\n"), short[:5])[0] == PROPERTY.split("\n")[:8]


def test_a_definition_without_a_docstring_gets_none() -> None:
    was = [*PROPERTY.split("\n"), "class A:", "    def total(self):", "        return 2"]
    without = [*was[:2], *was[6:]]
    assert with_kept_docstrings(was, without) == (was, ("total",))


def test_of_two_docstrings_with_one_first_line_each_stays() -> None:
    one = [
        "class A:",
        '    """A."""',
        "    def get(self):",
        '        """A.',
        "",
        "        More.",
        '        """',
        "        x",
    ]
    assert with_kept_docstrings(one, with_short_docstrings(one)) == (one, ())


def test_a_renamed_function_keeps_its_docstring_and_an_unknown_one_is_refused() -> None:
    was = PROPERTY.split("\n")[:8]
    renamed = [line.replace("total", "sum_of") for line in with_short_docstrings(was)]
    assert with_kept_docstrings(was, renamed)[0] == [line.replace("total", "sum_of") for line in was]
    outside = [line.removeprefix("    ") for line in renamed]
    with pytest.raises(PartialRewrite, match=r"the docstring of sum_of is left out: 'Sum. …'"):
        with_kept_docstrings(was, outside)


@pytest.mark.parametrize(
    "signature", ['def f(a="(", b=")"):', "def f(a):  # ( :", "def f[T: (int, str)](\n    a: T,\n):"]
)
def test_brackets_in_strings_and_comments_of_a_signature_are_none(signature: str) -> None:
    was = f'{signature}\n    # why\n    """A.\n\n    b\n    """\n    if a == ")":\n        return 1'.split("\n")
    short = with_short_docstrings(was)
    assert '    """A. …"""' in short
    assert with_kept_docstrings(was, short) == (was, ())
    assert with_kept_docstrings(was, [line.replace('"""', '"') for line in short]) == (was, ())


@pytest.mark.parametrize("written", ["Sum of all prices …", "Sum of all prices..."])
def test_an_ellipsis_never_stands_in_place_of_a_docstring(written: str) -> None:
    assert kept(SHORT.replace(FIRST, written)) == (LONG, ())


def test_a_whole_docstring_that_was_written_again_stays_as_it_is() -> None:
    assert kept(LONG) == (LONG, ())


@pytest.mark.parametrize(
    "text",
    [
        "def f(",
        'def f(a: str = ")"):\n    """never\nends\nat\nall',
        'def f(): return 1\nif x:\n    """a\n    b\n    c\n    d"""',
        'def f():\n    """a\n    b\n    c"""',
        'x = """\ndef f():\n"""',
        'x = """\ndef f():\n    """)\na\nb\nc\nd = """e"""',
        'def f():\n    """a\n    b\n    c\n    """; x = 1',
        'def f():\n    """a\n    b\n    c\n    """ "d"',
        'def f():\n    f"""a\n    b\n    c\n    """',
    ],
)
def test_text_that_is_no_long_docstring_stays(text: str) -> None:
    assert "\n".join(with_short_docstrings(text.split("\n"))) == text


LINES = ("def f():", "  def g(a):", "class C:", '    """a', '  """', "    b", "", "    '''x'''")


@given(st.lists(st.sampled_from(LINES)))
def test_shown_short_and_written_as_shown_every_text_is_as_before(lines: list[str]) -> None:
    names = [line for line in lines if line.strip().startswith(("def", "class"))]
    if len(names) == len(set(names)):
        assert with_kept_docstrings(lines, with_short_docstrings(lines))[0] == lines


FUNCTIONS = '''\
import math

# Adds them up.
@cached
@other(
    1
)
def total(
    prices,
) -> int:
    """Sum.

ends nothing: this is text
    """
    def inner():
        return (
    1
)
    # a comment
    return inner() + \\
1


class Cart:
    async def price(self): return 1
    size = 2
    text = """
def none():
    """

    def later(self):
        """Do it.

        Some day.
        """
        raise NotImplementedError
'''


def test_short_functions_are_told_with_what_is_above_them_and_to_their_end() -> None:
    lines = FUNCTIONS.split("\n")
    told = [(lines[each.start].strip(), lines[each.stop - 1].strip()) for each in short_functions(lines, 1_000)]
    price = "async def price(self): return 1"
    assert told == [("# Adds them up.", "1"), ("def inner():", ")"), (price, price)]
    assert short_functions(["def total():", '    """open'], 100) == ()


def test_a_function_is_short_without_its_docstring() -> None:
    lines = LONG.split("\n")
    size = len("".join(lines[8:20]))
    assert short_functions(lines, size - 1)[0] == range(8, 20)
    assert range(8, 20) not in short_functions(lines, size - 50)


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ('x = "' + '\\"' * 100_000, 0),
        ("'\\\n" * 100_000, 0),
        ("#" + "'" * 100_000, 0),
        ("def f():\n" * 20_000, 20_000),
        ("def f():\n    (\n" * 20_000, 20_000),
        ("def f():\n    \\\n" * 20_000, 20_000),
    ],
)
def test_a_hostile_text_is_read_once(text: str, functions: int) -> None:
    """Some took hours: each quote, or each bracket that nothing closes, was read to the end."""
    assert len(short_functions(text.split("\n"), 100)) == functions
