"""Words found in the sessions of a repository, from the command line."""

import json
from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.cli.verbs.sessions import search
from agent_workbench.core.events import UserSaid
from agent_workbench.core.ids import SessionId
from tests.adapters.git.conftest import home
from tests.adapters.git.user import User
from tests.adapters.journal.journals import SESSION, STORY, started, write_quickly
from tests.architecture.source_tree import ROOT

__all__ = ["home"]


def test_each_line_is_told_with_its_session_and_event(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert search(Namespace(words=["three", "pens"], json=True)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["kind"], each["seq"]) for each in told if each["session"].endswith("2x2dck")] == [("reflexion", 32)]
    assert search(Namespace(words=["never said by anybody " + "x" * 9], json=False)) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("no session contains")


def test_words_that_none_holds_as_they_are_bring_the_sessions_that_are_about_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path
) -> None:
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    user.write("a", "a\n")
    user.commit("Start")
    words = ("Round invoices to whole cents", "Draw the glider", "Send invoices twice")
    names = [SessionId(f"2026010{number}T030405-bcd345") for number in range(1, 4)]
    for name, said in zip(names, words, strict=True):
        write_quickly(user.root / "memory" / "sessions" / name, (started(name), UserSaid(said)))
    monkeypatch.chdir(user.root)
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home))
    assert search(Namespace(words=["cents", "of", "invoices"], json=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["no session contains “cents of invoices”", "closest by its words:"]
    assert [line.split()[0] for line in lines[2:]] == [names[0], names[2]]
    assert search(Namespace(words=["cents", "of", "invoices"], json=True)) == 0
    assert capsys.readouterr().out == ""


def test_what_a_fork_has_from_its_parent_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path
) -> None:
    user = User(tmp_path / "repo")
    user.git("init", "--quiet")
    user.write("a", "a\n")
    user.commit("Start")
    child = SessionId("20260103T030405-bcd345")
    forked = replace(started(child), parent=SESSION, parent_seq=len(STORY) - 1)
    sessions = user.root / "memory" / "sessions"
    write_quickly(sessions / SESSION)
    write_quickly(sessions / child, (forked, *STORY[1:], UserSaid("Say it in Saxon")))
    monkeypatch.chdir(user.root)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    assert search(Namespace(words=["say"], json=True)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["session"], each["seq"]) for each in told] == [(child, len(STORY)), (SESSION, 2)]
