"""Printing for people cuts what is endless; a document is printed whole."""

import pytest

from agent_workbench.cli.output import say, say_document
from agent_workbench.core.text.sanitizer import LIMIT_CHARS


def test_a_document_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    document = "x" * (LIMIT_CHARS + 1) + "\n"
    say_document(document)
    assert capsys.readouterr().out == document
    say(document)
    assert "are not shown" in capsys.readouterr().out
