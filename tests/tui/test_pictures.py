"""Pictures of every state of the panes and the gate, small and large; look at them when they change."""

import asyncio
from pathlib import Path
from typing import Protocol

import pytest
from pytest_textual_snapshot import normalize_svg
from textual.app import App
from textual.pilot import Pilot

from agent_workbench.core.live import SessionUpdate
from agent_workbench.tui.app import WorkbenchApp
from tests.fakes.scripted_session import FakeClock
from tests.tui.driver import LARGE, SMALL, driving
from tests.tui.scenes import DIALOGUES, SCENES, WIDE, Scene, readme

SCREENSHOT = Path(__file__).parents[2] / "docs" / "screenshot.svg"
README_SIZE = (150, 38)
SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])


class Compare(Protocol):
    def __call__(self, app: App[SessionUpdate], *, terminal_size: tuple[int, int], run_before: object) -> bool: ...


def compare(snap_compare: Compare, scene: Scene, size: tuple[int, int]) -> None:
    session = scene.session()
    clock = FakeClock()
    app = WorkbenchApp(lambda: session, clock=clock, first_run=scene.first_run)

    async def settle(pilot: Pilot[SessionUpdate]) -> None:
        while app.update_shown is not session.newest:
            await pilot.pause()
        if scene.looked:
            clock.advance(1.0)
        await pilot.press(*scene.keys)
        while colouring := [each for each in app.workers if each.group == "colours"]:
            await app.workers.wait_for_complete(colouring)
            await pilot.pause()
        for blinking in app.screen.query("Input, TextArea"):
            blinking.cursor_blink = False  # type: ignore[attr-defined] # both have it
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=settle)


@SIZES
@pytest.mark.parametrize("name", SCENES)
def test_state(name: str, size: tuple[int, int], snap_compare: Compare) -> None:
    compare(snap_compare, SCENES[name], size)


@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogue(name: str, snap_compare: Compare) -> None:
    compare(snap_compare, DIALOGUES[name], SMALL)


@pytest.mark.parametrize("name", WIDE)
def test_with_much_room(name: str, snap_compare: Compare) -> None:
    compare(snap_compare, WIDE[name], LARGE)


def test_a_terminal_that_is_too_small(snap_compare: Compare) -> None:
    compare(snap_compare, SCENES["idle"], (50, 12))


async def test_the_picture_in_the_readme_is_how_it_looks(pytestconfig: pytest.Config) -> None:
    async with driving(readme(), README_SIZE) as bench:
        await bench.until(lambda: not [each for each in bench.app.workers if each.group == "colours"])
        picture = normalize_svg(bench.app.export_screenshot(title="Agent Workbench"))
    if pytestconfig.option.update_snapshots:
        await asyncio.to_thread(SCREENSHOT.write_text, picture, "utf-8")
    assert await asyncio.to_thread(SCREENSHOT.read_text, "utf-8") == picture, "run `make snapshot-update`"
