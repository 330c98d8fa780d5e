"""Pictures and films of a recording: nothing in them is markup, each cell is in its place, the same is the same."""

import re
from contextlib import aclosing
from xml.etree import ElementTree

import pytest
from rich.segment import Segment
from rich.style import Style

from agent_workbench.api.sessions.session_opening import replayed_session
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import ActionDecided, UserSaid
from agent_workbench.core.proposals import Verdict
from agent_workbench.tui.pictures import CELL_PX, Lines, drawing, to_svg
from agent_workbench.views.timeline import pictured_gates
from tests.core.history.test_comparison import recorded
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

HOSTILE = "</text><script>alert(1)</script>&lt; \ufffe\x00"
CONTROLS = "<script>\x1b]52;c;SEFDS0VE\x07\x9b2J"
SVG = "{http://www.w3.org/2000/svg}"
SIZE = (120, 32)


def test_an_svg_holds_foreign_text_as_text() -> None:
    red = Style.parse("bold red on blue")
    tree = ElementTree.fromstring(to_svg([[Segment(HOSTILE, red)], [Segment("a  漢字b")]], HOSTILE))
    names = {each.tag.removeprefix(SVG) for each in tree.iter()}
    assert names == {"svg", "title", "rect", "g", "text"}
    texts = [
        (each.text, float(each.get("x", "")), float(each.get("textLength", ""))) for each in tree.iter(f"{SVG}text")
    ]
    assert texts[0][0] == "</text><script>alert(1)</script>&lt; \ufffd\ufffd"
    places = [(text, round(x / CELL_PX), round(width / CELL_PX)) for text, x, width in texts[1:]]
    assert places == [("a", 0, 1), ("漢字", 3, 4), ("b", 7, 1)]


def test_gates_are_pictured_as_they_were_decided() -> None:
    events = recorded(*runs.up_to_done())
    gates = list(pictured_gates(events))
    kinds = ["check", "diff", "check", "diff", "check", "commit"]
    assert [gate.name.partition("-")[2] for gate in gates] == [f"{kind}-approve" for kind in kinds]
    for gate in gates:
        decided = events[gate.seq + 1].event
        assert isinstance(decided, ActionDecided)
        assert (decided.proposal_id, decided.verdict) == (gate.proposal.id, Verdict.APPROVE)
    assert list(pictured_gates(recorded(*runs.up_to_first_diff())))[-1].verdict == "waits"


async def test_a_screen_that_fails_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    update = ScriptedSession(*runs.opening()).newest
    async with drawing(SIZE) as app:
        app.workbench.call_later(lambda: 1 / 0)
        with pytest.raises(WorkbenchError, match="could not be drawn"):
            await app.draw(update)
    assert "ZeroDivisionError" in capsys.readouterr().err


def text_of(lines: Lines) -> str:
    return "\n".join("".join(segment.text for segment in line) for line in lines)


async def test_a_recording_is_drawn_without_a_terminal() -> None:
    session = await replayed_session(recorded(*runs.up_to_reflexion(), UserSaid(CONTROLS)), at=-1)
    async with aclosing(session.live()) as updates:
        update = await anext(updates)
    async with drawing(SIZE) as app:
        lines = await app.draw(update)
    async with drawing(SIZE) as app:
        again = to_svg(await app.draw(update), "again")
    assert (len(lines), {line.cell_length for line in lines}) == (SIZE[1], {SIZE[0]})
    assert re.search(r"replay .*\d+ of \d+", text_of(lines))
    assert "<script>␛]52" in text_of(lines)
    assert text_of(lines).replace("\n", "").isprintable()
    assert ElementTree.fromstring(again).tag == f"{SVG}svg"
    assert to_svg(lines, "again") == again
