"""What a path tells about a file."""

import pytest

from agent_workbench.core.repo.path_kinds import is_program, is_test, names_test

TESTS = (
    *("test.py", "shop/tests.py", "test_cart.py", "cart_test.go", "cart.test.ts", "types/cart.test-d.ts"),
    *("tests/data.json", "CartTest.java"),
)
CODE = ("cart.py", "testing.py", "latest.py", "contest.rs", "attest.c", "protests.py", "shop/testimonials.py")


@pytest.mark.parametrize("path", [*TESTS, *CODE])
def test_a_file_of_tests_is_known_by_its_name_or_folder(path: str) -> None:
    assert is_test(path) is (path in TESTS)


@pytest.mark.parametrize("path", [*TESTS, *CODE, "README.md", "types/cart.d.ts", "cart.pyi"])
def test_tests_documents_and_types_are_no_program(path: str) -> None:
    assert is_program(path) is (path in CODE)


@pytest.mark.parametrize(
    "symbol", ["sdsTest", "test_total", "CartTest.total", "TestCart.total", "TestTotal", "tests.total"]
)
def test_a_test_is_known_by_its_name_in_a_file_of_the_program(symbol: str) -> None:
    assert names_test(symbol)


@pytest.mark.parametrize("symbol", ["sdsrange", "latest", "Testimony.total", "attest", "Cart.contest", ""])
def test_a_name_that_only_sounds_like_a_test_is_none(symbol: str) -> None:
    assert not names_test(symbol)
