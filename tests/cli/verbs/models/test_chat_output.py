"""Output of a chat: a sign of life until there is text, and results folded where the call went well."""

import io
import sys

import pytest

from agent_workbench.cli.verbs.chat import FOLDED_LINES, ChatPrinter
from agent_workbench.core.events import ActionFinished, ActionResult, ChatStarted, Event, UserSaid
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from tests.fakes.scripted_session import ScriptedSession


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_it_waits_for_is_shown_and_makes_room_for_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    aside = Terminal()
    monkeypatch.setattr(sys, "stderr", aside)
    monkeypatch.setattr(sys, "stdout", aside)
    printer = ChatPrinter(as_json=False)
    state = chat().state
    printer.show(SessionUpdate(state, Live(activity="answering", seconds=3.2)))
    assert aside.getvalue() == "\ranswering · 3 s"
    printer.show(SessionUpdate(state, Live(activity="answering", streaming=Streaming(text="Answer: Yes"))))
    assert aside.getvalue().endswith(f"\r{' ' * len('answering · 3 s')}\rYes")


@pytest.mark.parametrize(("result", "shown"), [(ActionResult.OK, FOLDED_LINES), (ActionResult.FAILED, 20)])
def test_a_result_is_folded_unless_the_call_failed(
    capsys: pytest.CaptureFixture[str], result: ActionResult, shown: int
) -> None:
    lines = "\n".join(f"line {number}" for number in range(30))
    ChatPrinter(as_json=False).show(chat(ActionFinished(ProposalId("P-1"), result, lines, 0.1)))
    out = capsys.readouterr().out
    assert out.count("line ") == shown
    assert f"… {30 - shown} more lines, recorded in the session" in out


def chat(*events: Event) -> SessionUpdate:
    return ScriptedSession(ChatStarted(1, ()), UserSaid("which files?"), *events).newest
