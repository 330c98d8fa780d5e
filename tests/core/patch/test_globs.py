"""Globs over paths."""

import pytest

from agent_workbench.core.patch.paths import matches_glob


@pytest.mark.parametrize(
    ("path", "pattern", "matches"),
    [
        ("a", "**", True),
        ("a/b/.c", "**", True),
        ("src/a.py", "src/**", True),
        ("src/a/b.py", "src/**", True),
        ("src/a.py", "src/", True),
        ("src", "src/**", False),
        ("srcs/a.py", "src/**", False),
        ("src/a.py", "src", False),
        ("src/a.py", "./src/*.py", True),
        ("src/a.py", "/src/*.py", True),
        ("src/b/a.py", "src/*.py", False),
        ("src/b/a.py", "src/**/*.py", True),
        ("src/a.py", "src/**/*.py", True),
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", False),
        ("src/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("a/x/b/x/c", "a/**/x/c", True),
        ("a/x/b/x/d", "a/**/x/c", False),
        ("a/b", "**/**/b", True),
        ("a/b", "a/**/**", True),
        ("a", "a/**/**", False),
        ("a.py", "?.py", True),
        ("ab.py", "?.py", False),
        ("a/b", "a?b", False),
        ("a/b", "a*b", False),
        ("a/b", "a[/]b", False),
        ("a1", "a[0-9]", True),
        ("ax", "a[!0-9]", True),
        ("a1", "a[!0-9]", False),
        ("A.py", "a.py", False),
        (".github/workflows/ci.yml", ".github/**", True),
        ("a\nb", "a?b", True),
        ("a", "", False),
        ("a**b", "a**b", True),
    ],
)
def test_matches_glob(path: str, pattern: str, matches: bool) -> None:
    assert matches_glob(path, pattern) is matches


def test_a_hostile_pattern_costs_no_time() -> None:
    assert not matches_glob("a/" * 200 + "b", "**/a/" * 50 + "c")
