"""Words found in the sessions of a repository, from the command line."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from agent_workbench.cli.sessions_search import execute
from tests.architecture.source_tree import ROOT


def test_each_line_is_told_with_its_session_and_event(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert execute(Namespace(words=["three", "pens"], json=True)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["kind"], each["seq"]) for each in told if each["session"].endswith("2x2dck")] == [("reflexion", 32)]
    assert execute(Namespace(words=["never said by anybody " + "x" * 9], json=False)) == 0
    assert "no session holds" in capsys.readouterr().out
