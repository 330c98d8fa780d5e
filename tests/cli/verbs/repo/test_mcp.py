"""Flags of `agent mcp`, before and after the word `serve`."""

import sys

import pytest

from agent_workbench.cli.main import parser
from tests.e2e.machine import Machine


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), (False, 0, False)),
        (("serve",), (False, 0, False)),
        (("--http",), (True, 0, False)),
        (("--http", "--port", "3200"), (True, 3200, False)),
        (("serve", "--http", "--port", "3200"), (True, 3200, False)),
        (("--http", "serve", "--port", "3200"), (True, 3200, False)),
        (("--unconfined", "serve"), (False, 0, True)),
    ],
)
def test_flags(words: tuple[str, ...], said: tuple[bool, int, bool]) -> None:
    options = parser(["mcp"]).parse_args(["mcp", *words])
    assert (options.http, options.port, options.unconfined) == said


def test_outside_of_a_repository_it_ends_with_an_error(machine: Machine) -> None:
    done = machine.agent("mcp", cwd=machine.home)
    assert (done.code, done.out) == (4, "")
    assert "repository" in done.err


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
@pytest.mark.slow
def test_without_both_pipes_it_ends_with_an_error(machine: Machine, closed: str) -> None:
    repo = machine.new_repo("empty", {"a.py": ""})
    done = machine.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-P", "-m", "agent_workbench", "mcp"], repo
    )
    assert (done.code, done.out) == (2, "")
    assert "is closed" in done.err
