"""`agent doctor`: a sign of life while a model loads, which is gone from the report."""

import io
import sys

import pytest

from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.cli.main import execute
from agent_workbench.core.diagnostics import Finding, Health
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation
from agent_workbench.subjects.models import calls


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_takes_time_is_shown_and_makes_room_for_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aside = Terminal()
    monkeypatch.setattr(sys, "stderr", aside)
    shown = []

    async def examine_slowly(_: Invocation, say: Say) -> tuple[Finding, ...]:
        shown.append(aside.getvalue())
        say("the model server loads coder.gguf (4 s)")
        return (Finding("model", Health.GOOD, "coder.gguf at embedded llama.cpp"),)

    monkeypatch.setattr(calls, "examine_place", examine_slowly)
    assert execute(["doctor"]) == ExitCode.DONE
    assert shown == ["\rchecking this machine and repository"]
    loads = "the model server loads coder.gguf (4 s)"
    assert aside.getvalue().endswith(f"\r{loads}\r{' ' * len(loads)}\r")
    assert "coder.gguf at embedded llama.cpp" in capsys.readouterr().out
