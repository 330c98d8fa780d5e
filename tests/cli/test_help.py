"""Every verb explains itself."""

import argparse
from collections.abc import Iterator

import pytest

from agent_workbench.cli.main import parser
from tests.e2e.machine import Machine


def verbs(root: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each verb below a parser, the parser's own first."""
    yield path
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from verbs(below, (*path, name))


def test_there_are_as_many_verbs_as_the_readme_speaks_of() -> None:
    names = {path[0] for path in verbs(parser()) if path}
    assert names == {
        *("tui", "run", "replay", "init", "new", "plan", "sessions", "verify", "merge", "clean", "search", "audit")
    } | {
        "index",
        *(
            "chat",
            "consult",
            "inbox",
            "knowledge",
            "mcp",
            "model",
            "rules",
            "skills",
            "trust",
            "doctor",
            "demo",
            "worker",
        ),
    }


@pytest.mark.parametrize("path", list(verbs(parser())), ids=lambda path: "-".join(path) or "agent")
def test_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parser().parse_args([*path, "--help"])
    assert stop.value.code == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: {' '.join(('agent', *path))}")
    assert "None" not in told
    # Each flag and each word says what it is for.
    lines = [line for line in told.splitlines() if line.startswith("  -") and "--help" not in line]
    assert all(len(line.split()) > 1 for line in lines)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_it_answers_anywhere(machine: Machine, flag: str) -> None:
    done = machine.agent(flag, cwd=machine.home)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("usage: agent" if flag == "--help" else "agent 0.")
