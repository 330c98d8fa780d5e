"""The map of a repository as the model reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.repo.repo_map import RepoMap
from agent_workbench.engine.prompt.task_text import NEAR, map_text

PATHS = ("a.py", "src/b.py", "src/c.py")


@pytest.mark.parametrize(
    ("tests", "command", "line"),
    [
        (("tests",), "make \x1btest", "\nTests: tests/, run by make \\x1btest"),
        (("tests", "src/tests"), "", "\nTests: tests/, src/tests/"),
        ((), "make test", "\nTests: run by make test"),
        ((), "", ""),
    ],
)
def test_a_map_tells_where_the_tests_are_and_what_runs_them(tests: tuple[str, ...], command: str, line: str) -> None:
    assert map_text(RepoMap(3, tests=tests, test_command=command)) == f"The repository has 3 files.{line}"


@pytest.mark.parametrize(("files", "line"), [(3, ""), (4, "\nFolders: src/ 2, docs/ 1")])
def test_folders_are_told_where_not_all_files_are_listed(files: int, line: str) -> None:
    drawn = RepoMap(files, (("Python", 2), ("C", 1)), (("src", 2), ("docs", 1)), near=PATHS)
    head = f"The repository has {files} files: Python 2, C 1.{line}"
    assert map_text(drawn) == f"{head}\n{NEAR}\n./ a.py\nsrc/ b.py, c.py"


@given(st.integers(0, 200))
def test_with_a_limit_the_nearest_paths_that_fit_are_told(limit: int) -> None:
    drawn = RepoMap(3, near=PATHS)
    head, told = map_text(RepoMap(3)), map_text(drawn, limit)
    fitting = [count for count in range(4) if len("\n".join((head, *PATHS[:count]))) <= limit or not count]
    assert told == map_text(RepoMap(3, near=PATHS[: max(fitting) if limit else 3]))
