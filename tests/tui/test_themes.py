"""Every tone can be read in the themes that count, and every state without colours at all."""

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from agent_workbench.tui.terminal_app import HIGH_CONTRAST, HIGH_CONTRAST_LIGHT, shown_theme
from agent_workbench.tui.widgets.colours import CURSOR, CURSOR_BLURRED, LOOKS, contrast, mixed
from agent_workbench.views.blocks import Tone
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving

AA, AAA = 4.5, 7.0
MEASURED = (
    (BUILTIN_THEMES["textual-dark"], AA),
    (BUILTIN_THEMES["textual-light"], AA),
    (BUILTIN_THEMES["solarized-light"], AA),
    (HIGH_CONTRAST, AAA),
    (HIGH_CONTRAST_LIGHT, AAA),
)


def test_the_ratio_is_that_of_wcag() -> None:
    assert contrast(Color(0, 0, 0), Color(255, 255, 255)) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), Color.parse("#ffffff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("theme", "least"), MEASURED, ids=[theme.name for theme, _ in MEASURED])
@pytest.mark.parametrize("coarse", [False, True], ids=["truecolor", "256"])
def test_every_tone_can_be_read_on_panes_dialogues_and_under_the_cursor(
    theme: Theme, least: float, coarse: bool
) -> None:
    variables = theme.to_color_system().generate() | theme.variables
    for ground in ("background", "surface"):
        own = Color.parse(variables[ground])
        cursors = [mixed(look, variables, own, coarse=coarse)[1] for look in (CURSOR, CURSOR_BLURRED)]
        for tone in set(Tone) - {Tone.RULE}:
            text, behind = mixed(LOOKS[tone], variables, own, coarse=coarse)
            grounds = [own, *cursors] if behind is None else [behind]
            weakest = min(contrast(text, each) for each in grounds if each is not None)
            assert weakest >= least, f"{tone} on {ground}: {weakest:.1f}"


def test_few_colours_are_those_of_the_terminal() -> None:
    dark, light = BUILTIN_THEMES["nord"], BUILTIN_THEMES["textual-light"]
    assert [shown_theme(dark, colours) for colours in ("truecolor", "256")] == ["nord", "nord"]
    assert [shown_theme(each, "standard") for each in (dark, light)] == ["ansi-dark", "ansi-light"]


async def test_without_colours_the_cursor_the_focus_and_the_badge_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("1")
        lines = bench.styled()
        assert not [style for line in lines for _, style in line if style and (style.color or style.bgcolor)]
        reversed_texts = ["".join(text for text, style in line if style and style.reverse) for line in lines]
        assert any("T-1" in each for each in reversed_texts)
        assert any("1 Plan" in each for each in reversed_texts)
        assert any("diff" in each for each in reversed_texts)
