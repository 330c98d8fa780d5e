"""Recorder of the films in docs/films: `make films` types the tested pages and keeps what the terminal showed.

Each film is an asciicast for `asciinema play`, and an SVG that shows its screens one after the other without a script.
"""

import getpass
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyte
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent_workbench.tui.pictures import to_svg
from tests.architecture.source_tree import ROOT
from tests.docs.asciicast import Asciicast
from tests.docs.newcomer import NIGHT, TUTORIAL, move_in, set_up
from tests.docs.pages import scenes
from tests.docs.typist import COLUMNS, ROWS, Typist

FILMS = ROOT / "docs/films"
TITLES = {
    "first-task": "A task from its start to the merge",
    "replay-and-fork": "A session is replayed and forked",
    "night-run": "Tasks at night, decisions in the morning",
}
READING_SECONDS, KEY_SECONDS, LONGEST_SECONDS, LAST_SECONDS = 2.0, 0.06, 0.3, 4.0
# A screen that is replaced sooner is no picture of its own in the SVG.
SHORTEST_SECONDS = 0.9
FRAME_SECONDS = 0.04
SCREENS = re.compile(r"(\x1b\[\?1049[hl])")
BEGIN = "\x1b[2J\x1b[H$ "


class Film:
    """What a terminal showed, and when."""

    def __init__(self, name: str, hidden: dict[str, str]) -> None:
        self.name, self._hidden = name, hidden
        self.pieces: list[tuple[float, str]] = [(0.0, BEGIN)]
        self._seconds, self._heard_at = 0.0, time.monotonic()

    def heard(self, text: str, pause: float) -> None:
        """Add a piece of output, after a pause of the person or as long as the machine took."""
        now = time.monotonic()
        self._seconds += pause or min(now - self._heard_at, LONGEST_SECONDS)
        self._heard_at = now
        for word, shown in self._hidden.items():
            text = text.replace(word, shown)
        self.pieces.append((self._seconds, text))

    def cast(self) -> str:
        """Return the asciicast (version 2): of each screen only what changed, which is a fraction of what was sent."""
        cast = Asciicast((COLUMNS, ROWS), TITLES[self.name], None)
        before = 0.0
        for at, lines in self._screens(FRAME_SECONDS):
            cast.add([Strip(line) for line in lines], at - before)
            before = at
        return cast.text()

    def svg(self) -> str:
        """Return the film as one SVG that shows each screen for as long as it stayed."""
        shown = [*self._screens(SHORTEST_SECONDS)]
        times = [0.0, *(at for at, _ in shown[1:]), self._seconds + LAST_SECONDS]
        return animated([lines for _, lines in shown], times, TITLES[self.name])

    def _screens(self, shortest_seconds: float) -> Iterator[tuple[float, list[list[Segment]]]]:
        """Yield the screens that stayed so long, each with the time at which it appeared."""
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.Stream(screen)
        following = [at for at, _ in self.pieces[1:]] + [self._seconds + LAST_SECONDS]
        for (at, text), until in zip(self.pieces, following, strict=True):
            for part in SCREENS.split(text):  # pyte has one screen
                if SCREENS.fullmatch(part):
                    screen.reset()
                stream.feed(part)
            if until - at >= shortest_seconds:
                yield at, rows(screen)


def rows(screen: pyte.Screen) -> list[list[Segment]]:
    """Return the lines of a screen as segments of one style each."""
    found = []
    for y in range(screen.lines):
        cells = [screen.buffer[y][x] for x in range(screen.columns)]
        line: list[Segment] = []
        for cell in cells:
            style = Style(color=_colour(cell.fg), bgcolor=_colour(cell.bg), bold=cell.bold, reverse=cell.reverse)
            if line and line[-1].style == style:
                line[-1] = Segment(line[-1].text + cell.data, style)
            else:
                line.append(Segment(cell.data, style))
        found.append(line)
    return found


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    return (
        f"#{name}"
        if len(name) == 6 and all(each in "0123456789abcdef" for each in name)
        else name.replace("brown", "yellow")
    )


def animated(screens: Sequence[list[list[Segment]]], times: Sequence[float], title: str) -> str:
    """Return an SVG that shows `screens` from `times` on, and begins anew after the last time."""
    drawn = [to_svg(lines, title).splitlines() for lines in screens]
    head, ground = drawn[0][:2], drawn[0][2]
    parts: dict[str, str] = {}
    frames = []
    total = times[-1]
    style = []
    for number, lines in enumerate(drawn):
        uses = []
        for line in lines[3:-1]:
            if line.startswith(("<rect", "<text")):
                uses.append(f'<use href="#{parts.setdefault(line, f"p{len(parts)}")}"/>')
            else:
                uses.append(line)
        start, end = (100 * each / total for each in (times[number], times[number + 1]))
        style.append(
            f"@keyframes k{number}{{0%{{visibility:hidden}}{start:.2f}%{{visibility:visible}}"
            f"{end:.2f}%{{visibility:hidden}}}}"
            f"#f{number}{{visibility:hidden;animation:k{number} {total:.1f}s step-end infinite}}"
        )
        frames.append(f'<g id="f{number}">{"".join(uses)}</g>')
    shared = [line.replace(" ", f' id="{name}" ', 1) for line, name in parts.items()]
    return "\n".join(
        [*head, f"<style>{''.join(style)}</style>", ground, f"<defs>{''.join(shared)}</defs>", *frames, "</svg>\n"]
    )


def record(page: Path, home: Path) -> Iterator[Film]:
    """Type a page in a new home, and yield its films."""
    environment = move_in(home)
    host = socket.gethostname()
    venv = str(Path(sys.executable).parent)
    hidden = {
        venv: "/home/mia/agent/.venv/bin",
        str(home): "/home/mia",
        f"{getpass.getuser()}@{host}": "mia@laptop",
        f"{host}-": "laptop-",
    }
    films: list[Film] = []

    def heard(text: str, pause: float) -> None:
        if films:
            films[-1].heard(text, pause)

    folder = home if page == TUTORIAL else set_up(home, environment)
    with Typist(folder, environment, heard=heard, reading_seconds=READING_SECONDS, key_seconds=KEY_SECONDS) as typist:
        typist.play([*scenes(page)], lambda name: films.append(Film(name, hidden)))
    yield from films


def main() -> None:
    """Record all films, or those of the pages that are named."""
    FILMS.mkdir(exist_ok=True)
    for page in (TUTORIAL, NIGHT):
        with tempfile.TemporaryDirectory() as folder:
            for film in record(page, Path(folder) / "home"):
                (FILMS / f"{film.name}.cast").write_text(film.cast(), "utf-8")
                (FILMS / f"{film.name}.svg").write_text(film.svg(), "utf-8")


if __name__ == "__main__":
    main()
