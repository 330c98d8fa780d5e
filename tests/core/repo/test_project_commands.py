"""Lines that are a trusted test command or a part of it, and lines that only look so."""

import pytest

from agent_workbench.core.repo.project_commands import command_of, is_part_of, narrowed

BOTH = "(cd api && pytest -q) && (cd 'web app' && npm test)"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("make test", "make test"),
        (narrowed("pytest -q", ("tests/test_a.py", "tests/test b.py")), "pytest -q"),
        (narrowed(".venv/bin/python -m pytest", ("test_a.py",)), ".venv/bin/python -m pytest"),
        (command_of(BOTH, ("api/a.py",)), BOTH),
        (command_of(BOTH, ("web app/a.js",)), BOTH),
    ],
)
def test_what_a_task_in_words_is_given_is_a_part(line: str, command: str) -> None:
    assert is_part_of(line, command)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", ""),
        ("pytest", ""),
        ("make test deploy", "make test"),
        ("make test_deploy.py", "make"),
        ("pytest -q", "pytest"),
        ("pytest -q -x test_a.py", "pytest -q"),
        ("pytest test_a.py; rm -r .", "pytest"),
        ("pytest $(x)/test_a.py", "pytest"),
        ("pytest /tmp/test_a.py", "pytest"),
        ("pytest ../test_a.py", "pytest"),
        ("pytest shop.py", "pytest"),
        ("pytest 'test_a.py", "pytest"),
        ("pytest ''", "pytest"),
        ("(cd api && pytest -q)", "echo '(cd api && pytest -q)'"),
        ("(cd api && rm -r .)", BOTH),
        ("(cd   && pytest)", "(cd   && pytest) && (cd api && pytest)"),
    ],
)
def test_any_other_line_is_none(line: str, command: str) -> None:
    assert not is_part_of(line, command)
