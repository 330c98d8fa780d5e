"""The workbench in tmux as somebody works in it: resized, left and come back to, killed, taken up, interrupted."""

from pathlib import Path

import pytest

from tests.e2e.machine import WHOLE, Machine, bodies, journal_lines
from tests.e2e.tmux import HAS_TMUX, Tmux, tmux

pytestmark = [
    pytest.mark.xdist_group("pty"),
    pytest.mark.skipif(not HAS_TMUX, reason="machine lacks: tmux"),
]
WRONG = "line.cents + line.quantity"


def decided(shop: Path) -> list[str]:
    """Return the proposals that the user approved."""
    lines = bodies(journal_lines(shop), "action_decided")
    return [line["proposal_id"] for line in lines if line["verdict"] == "approve" and line["by"] == "user"]


def approve(screen: Tmux, shop: Path) -> None:
    """Press `a` until what waits is approved: it scrolls first to what was not seen, and counts for nothing at once."""
    before = len(decided(shop))

    def pressed() -> bool:
        if len(decided(shop)) == before:
            screen.press("a")
        return len(decided(shop)) > before

    screen.until(pressed, "the approval")


def send(screen: Tmux, shop: Path) -> None:
    """Press Enter until the first prompt is sent: it counts for nothing before the prompt is on screen."""
    screen.shows("what is sent first")

    def pressed() -> bool:
        if not bodies(journal_lines(shop), "prompt_built"):
            screen.press("Enter")
        return bool(bodies(journal_lines(shop), "prompt_built"))

    screen.until(pressed, "the first prompt")


@pytest.mark.slow
def test_a_session_lives_through_what_terminals_do(tmp_path: Path) -> None:
    machine, shop = Machine(tmp_path / "machine"), tmp_path / "shop"
    with tmux(machine, tmp_path) as screen:
        screen.start("demo", "--folder", str(shop), columns=80, rows=24)
        screen.skip_tour()
        screen.shows("start T-1: Enter")
        screen.press("Enter")
        screen.shows("approve: a")
        approve(screen, shop)
        send(screen, shop)
        screen.shows("being written")
        screen.shows("approve: a", "cart.py")
        waiting = bodies(journal_lines(shop), "action_proposed")[-1]["proposal"]
        assert WRONG in waiting["diff"]

        with screen.client(120, 40):
            screen.until(lambda: screen.size[0] == 120, "the client's size")
            screen.shows("1 Plan", "2 Steps", "3 Diff", *WRONG.split(" + "), "approve: a")  # it is wrapped
        screen.resize(80, 24)
        screen.shows("approve: a", "cart.py")

        screen.process.kill()
        screen.start_again("tui", folder=shop)
        screen.skip_tour()  # the demo's tour does not count as the first one
        screen.shows("reject: r", "cart.py")
        assert bodies(journal_lines(shop), "action_proposed")[-1]["proposal"] == waiting
        approve(screen, shop)
        assert decided(shop)[-1] == waiting["id"]

        # What was approved is being applied, or is not yet, or the checks are offered: nothing of it may be lost.
        screen.press("C-c", "C-c")
        screen.ends()
    assert bodies(journal_lines(shop), "session_left") == [{"reason": "left by the user"}]
    applied = bodies(journal_lines(shop), "patch_applied")
    assert (WRONG in next(machine.state.rglob("cart.py")).read_text()) == bool(applied)
    assert machine.agent("sessions", "verify", cwd=shop).code in WHOLE
