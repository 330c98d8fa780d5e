"""What a film keeps of each screen."""

import json

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.docs.asciicast import Asciicast


def test_an_asciicast_tells_what_changed_and_when() -> None:
    cast = Asciicast((4, 2), "a\x1b", 1_700_000_000)
    red, white = Segment("漢", Style.parse("bold #ff0000")), Segment("cd")
    cast.add((Strip([red, white]), Strip([white, white])), 0.0)
    cast.add((Strip([red, Segment("ef")]), Strip([Segment("gh"), white])), 1.5, "waits")
    cast.add((Strip([red, Segment("ef")]), Strip([Segment("gh"), white])), 0.5)
    text = cast.text()
    assert text.isascii()
    header, *lines = map(json.loads, text.splitlines())
    assert (header["version"], header["width"], header["height"], header["timestamp"]) == (2, 4, 2, 1_700_000_000)
    first = "\x1b[1;1H\x1b[0;1;38;2;255;0;0m漢\x1b[0mcd\x1b[0m\x1b[2;1H\x1b[0mcd\x1b[0mcd\x1b[0m"
    assert lines == [
        [0.0, "o", f"\x1b[?25l\x1b[2J{first}"],
        [1.5, "o", "\x1b[1;3H\x1b[0mef\x1b[0m\x1b[2;1H\x1b[0mgh\x1b[0m"],
        [1.5, "m", "waits"],
        [4.0, "o", ""],
    ]
