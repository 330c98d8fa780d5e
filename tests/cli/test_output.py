"""Printing for people cuts what is endless; a document is printed whole."""

import pytest

from agent_workbench.cli import questions
from agent_workbench.cli.output import say, say_document
from agent_workbench.cli.questions import ProgressLine, Remarks
from agent_workbench.core.text.sanitizer import LIMIT_CHARS


def test_a_document_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    document = "x" * (LIMIT_CHARS + 1) + "\n"
    say_document(document)
    assert capsys.readouterr().out == document
    say(document)
    assert "are not shown" in capsys.readouterr().out


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProgressLine() as line:
        line.show("what ends soon is not told")
        monkeypatch.setattr(questions, "EACH_SECONDS", 0.0)
        line.show("reading the prompt, 512 of 2,170 tokens")
    assert capsys.readouterr().err == "reading the prompt, 512 of 2,170 tokens\n"


def test_a_remark_that_only_counts_on_is_printed_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remark = Remarks()
    for text in ("nothing is trusted", "loads coder.gguf (1 s)", "loads coder.gguf (2 s)"):
        remark(text)
    assert capsys.readouterr().err == "nothing is trusted\nloads coder.gguf (1 s)\n"
    monkeypatch.setattr(questions, "EACH_SECONDS", 0.0)
    remark("loads coder.gguf (13 s)")
    assert capsys.readouterr().err == "loads coder.gguf (13 s)\n"
