from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.repo.repo_map import LEAST_PATHS, MAX_PATH_CHARS, MOST_PATHS, RepoMap, map_repo

SHOP = (
    *("README.md", "shop/__init__.py", "shop/cart.py", "shop/discount.py", "shop/tax.py"),
    *("tests/test_cart.py", "tests/test_tax.py", "tests/data/cart.json", "docs/cart.md", "logo.png", "tool.sh"),
)


def test_a_map_shows_languages_folders_tests_and_the_nearest_files() -> None:
    drawn = map_repo(SHOP, ["shop/cart.py"], "Give the cart a discount", "pytest -q")
    assert drawn.files == len(SHOP)
    assert drawn.languages == (("Python", 6), ("shell", 1))
    assert drawn.folders == (("shop", 4), ("tests", 3), ("docs", 1))
    assert drawn.tests == ("tests",)
    assert drawn.test_command == "pytest -q"
    assert drawn.near[:4] == ("shop/cart.py", "tests/test_cart.py", "tests/data/cart.json", "shop/discount.py")
    assert (
        drawn.near.index("shop/discount.py") < drawn.near.index("shop/tax.py") < drawn.near.index("tests/test_tax.py")
    )
    assert "logo.png" not in drawn.near


def test_a_folder_of_one_folder_is_opened() -> None:
    paths = [f"src/agent/core/{name}.py" for name in "abc"] + ["src/agent/tui/d.py", "x/y/z.py"]
    assert map_repo(paths, [], "").folders == (("src/agent", 4), ("x/y", 1))


def test_names_that_fit_no_line_are_counted_and_not_listed() -> None:
    odd = ["a\nb.py", "c\x1b[31m.py", f"{'d' * MAX_PATH_CHARS}.py", "e\u202e.py", "f\n/g.py", "t\n/tests/x.py"]
    drawn = map_repo([*odd, "plain.py"], ["a\nb.py"], "a b")
    assert (drawn.files, drawn.near, drawn.folders) == (7, ("plain.py",), ())


def test_between_20_and_40_files_are_listed() -> None:
    short, long = ([f"{name}/{number:03}.py" for number in range(100)] for name in ("a", "a" * 90))
    assert len(map_repo(short, [], "").near) == MOST_PATHS
    assert len(map_repo(long, [], "").near) == LEAST_PATHS


@given(st.lists(st.text("ab/._\n", min_size=1, max_size=9), max_size=30), st.text(max_size=20))
def test_any_paths_give_a_map(paths: list[str], words: str) -> None:
    drawn = map_repo(paths, paths[:2], words)
    assert set(drawn.near) <= set(paths)
    assert drawn == map_repo(paths, paths[:2], words)
    assert map_repo([], [], "") == RepoMap(0)
