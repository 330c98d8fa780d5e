"""Pictures of every screen and state at three sizes; look at them when they change.

One run of the app is drawn at each size: the smallest as SVG, for the colours; the larger ones as text, which is a
tenth as large and can be read in a diff.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest
from pytest_textual_snapshot import normalize_svg
from textual.app import App

from agent_workbench.core.live import SessionUpdate
from tests.tui.driver import Driver, driving
from tests.tui.scenes import DIALOGUES, SCENES, WIDE, Scene, readme

PICTURES = Path(__file__).parent / "pictures"
SCREENSHOT = Path(__file__).parents[2] / "docs" / "screenshot.svg"
README_SIZE = (150, 38)
SVG, TEXT = "svg", "txt"
LARGER = (((120, 40), TEXT), ((200, 60), TEXT))
THREE_SIZES = (((80, 24), SVG), *LARGER)
Sizes = Sequence[tuple[tuple[int, int], str]]


class Compare(Protocol):
    def __call__(self, app: App[SessionUpdate], *, terminal_size: tuple[int, int], run_before: object) -> bool: ...


async def settle(bench: Driver) -> None:
    """Wait until code has its colours and nothing blinks."""
    while colouring := [each for each in bench.app.workers if each.group == "colours"]:
        await bench.app.workers.wait_for_complete(colouring)
        await bench.pilot.pause()
    for blinking in bench.screen.query("Input, TextArea"):
        blinking.cursor_blink = False  # type: ignore[attr-defined] # both have it
    await bench.idle()


def keep(path: Path, drawn: str, config: pytest.Config, looks: Path) -> str:
    """Compare what was drawn with what is kept, or keep it; return what is wrong. Any other picture goes to `looks`."""
    if config.option.update_snapshots:
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, "utf-8")
    if path.exists() and path.read_text("utf-8") == drawn:
        return ""
    (looks / path.name).write_text(drawn, "utf-8")
    return f"{path.name} looks otherwise, see {looks / path.name}; `make snapshot-update` accepts it"


def plain(text: str) -> str:
    """Return a screen's text without the blanks at the ends of its lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n"))


async def draw(name: str, scene: Scene, sizes: Sizes, config: pytest.Config, looks: Path, theme: str = "") -> None:
    async with driving(scene.session(), sizes[0][0], first_run=scene.first_run) as bench:
        if theme:
            bench.app.theme = theme
        if scene.looked:
            await bench.look()
        await bench.press(*scene.keys)
        wrong = await draw_screen(bench, name, sizes, config, looks)
    assert not wrong, wrong


async def draw_screen(bench: Driver, name: str, sizes: Sizes, config: pytest.Config, looks: Path) -> str:
    """Draw the screen as it is at each size; return what is wrong with the pictures."""
    wrong = []
    for size, form in sizes:
        if size != bench.app.size:
            await bench.resize(*size)
        await settle(bench)
        title = f"{name}-{size[0]}x{size[1]}"
        drawn = normalize_svg(bench.app.export_screenshot(title=name)) if form == SVG else plain(bench.text())
        wrong.append(await asyncio.to_thread(keep, PICTURES / f"{title}.{form}", drawn, config, looks))
    return "\n".join(filter(None, wrong))


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.slow(quick=6)
async def test_state(name: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    await draw(name, SCENES[name], THREE_SIZES, pytestconfig, tmp_path)


@pytest.mark.parametrize("name", DIALOGUES)
@pytest.mark.slow(quick=6)
async def test_dialogue(name: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    await draw(name, DIALOGUES[name], THREE_SIZES, pytestconfig, tmp_path)


@pytest.mark.parametrize("name", WIDE)
async def test_with_much_room(name: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    await draw(name, WIDE[name], (((200, 60), SVG),), pytestconfig, tmp_path)


async def test_a_terminal_that_is_too_small(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    await draw("too_small", SCENES["idle"], (((50, 12), TEXT),), pytestconfig, tmp_path)


@pytest.mark.slow(quick=1)
@pytest.mark.parametrize("theme", ["textual-light", "high-contrast", "high-contrast-light", "ansi-dark"])
async def test_other_colours(theme: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    await draw(f"hunk_left-{theme}", SCENES["hunk_left"], (((80, 24), SVG),), pytestconfig, tmp_path, theme)


async def test_the_picture_in_the_readme_is_how_it_looks(pytestconfig: pytest.Config) -> None:
    async with driving(await asyncio.to_thread(readme), README_SIZE) as bench:
        await bench.until(lambda: not [each for each in bench.app.workers if each.group == "colours"])
        picture = normalize_svg(bench.app.export_screenshot(title="Agent Workbench"))
    if pytestconfig.option.update_snapshots:
        await asyncio.to_thread(SCREENSHOT.write_text, picture, "utf-8")
    assert await asyncio.to_thread(SCREENSHOT.read_text, "utf-8") == picture, "run `make snapshot-update`"
