"""The plan changed in its pane: order, blocking, and its text in an editor that loses nothing."""

from typing import cast

import pytest
from msgspec import Struct, field
from msgspec.structs import replace
from textual.widgets import TextArea

from agent_workbench.core.errors import ConfigError, ForgeError
from agent_workbench.core.events import Author, PlanRead
from agent_workbench.core.ids import CommitId, TaskId
from agent_workbench.core.intents import BlockTask, EditPlan, MoveTask, OpenPlan
from agent_workbench.core.outcomes import Accepted, PlanOpened, Refused
from agent_workbench.core.plan import Plan, PlanPiece
from agent_workbench.core.ports.forge import ShownPullRequest
from agent_workbench.tui.panes.plan import PlanPane
from agent_workbench.tui.screens.plan_text import indent_after
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving

PIECE = PlanPiece("memory/plans/PLAN.yaml", "tasks:\n- id: T-2\n", 7, 17, "- id: T-2\n", 2, 2, runs.T2)


class GivenRequests(Struct):
    """Implements `core.ports.forge.PullRequests`; the second one is refused."""

    opened: list[str] = field(default_factory=list)
    forge: bool = True

    async def preview(self, task: TaskId) -> ShownPullRequest:
        if not self.forge:
            raise ConfigError("no forge is known", advice="set forge.url")
        commit, where = CommitId("c" * 40), ("https://github.com/acme/shop", "GITHUB_TOKEN")
        return ShownPullRequest(task, commit, f"agent/{task}", f"{task}: [b]it[/b]", "", ("c0ffee0 Do it",), "", *where)

    async def open(self, shown: ShownPullRequest) -> str:
        self.opened.append(shown.branch)
        if len(self.opened) > 1:
            raise ForgeError("the forge refused it", advice="check the token")
        return f"{shown.address}/pull/7"


async def test_a_pull_request_of_a_done_task_is_asked_about_and_opened() -> None:
    given = GivenRequests()
    async with driving(ScriptedSession(*runs.up_to_done()), pull_requests=lambda: given) as bench:
        for answer, opened in (("n", 0), ("y", 1), ("y", 2)):
            await bench.press("1", "g", "p")
            await bench.until(lambda: bench.screen.name == "confirm")
            for said in ("T-1: [b]it[/b]", "c0ffee0 Do it", "https://github.com/acme/shop", "GITHUB_TOKEN"):
                assert said in bench.text()
            await bench.look()
            await bench.press(answer)
            await bench.until(lambda count=opened: len(given.opened) == count)  # type: ignore[misc]
        await bench.until(lambda: "check the token" in bench.text())
        assert "https://github.com/acme/shop/pull/7" in bench.text()
        given.forge = False
        await bench.press("1", "g", "p")
        await bench.until(lambda: "set forge.url" in bench.text())
        assert bench.session.intents == []


async def test_a_task_is_moved_and_blocked_with_a_reason() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session) as bench:
        await bench.press("1", "j", "K")
        assert session.intents == [MoveTask(runs.T2, up=True)]
        task_1 = replace(runs.TASK_1, description="Count")
        await bench.record(PlanRead("PLAN.yaml", Plan((runs.TASK_2, task_1, runs.TASK_3)), Author.USER))
        assert bench.pane("plan").cursor == 0
        rows = bench.pane("plan").rows
        said = " ".join(text for row in rows for text, _ in row.spans)
        assert "changed in the plan" in " ".join(said.split())
        await bench.plan.block("T-2", "no key")
        assert session.intents[1:] == [BlockTask(runs.T2, "no key")]


async def test_a_task_is_edited_until_it_can_be_read() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session) as bench:
        await bench.press("1", "j", "e")
        await bench.answer(PlanOpened(PIECE))
        area = bench.screen.query_one(TextArea)
        assert (area.text, area.line_number_start) == (PIECE.text, 2)
        await bench.press("down", "x", "ctrl+s")
        edit = EditPlan(PIECE, "- id: T-2\nx")
        assert session.intents == [OpenPlan(runs.T2), edit]
        fault = "memory/plans/PLAN.yaml:3:1: this is not YAML"
        await bench.answer(Refused(fault))
        assert fault in bench.text()
        assert (area.text, area.cursor_location) == (edit.text, (1, 1))
        await bench.press("ctrl+s")
        await bench.answer(Accepted())
        assert bench.screen is bench.app.workbench
        assert session.intents[2:] == [edit]


async def test_a_new_task_is_shown_from_the_beginning_of_its_lines() -> None:
    text = (
        "".join(f"# {'as wide as a comment gets ' * 4}{number}\n" for number in range(12))
        + "tasks:\n- id: T-1\n  description: what is to be done\n"
    )
    piece = PlanPiece("PLAN.yaml", text, 0, len(text), text, 1, 15, new=True)
    session = ScriptedSession(*runs.opening())
    async with driving(session, SMALL) as bench:
        await bench.press("1")
        assert ("merge: m" in bench.text(), "new task: n" in bench.text()) == (False, True)
        await bench.press("n")
        await bench.answer(PlanOpened(piece))
        area = bench.screen.query_one(TextArea)
        assert area.cursor_location == (14, 33)
        assert (area.scroll_offset.x, "- id: T-1" in bench.text()) == (0, True)


async def test_keys_typed_ahead_open_one_text_of_the_plan() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session) as bench:
        await bench.press("1")
        plan = cast("PlanPane", bench.pane("plan"))
        plan.action_edit_task()
        plan.action_new_task()
        await bench.idle()
        await bench.press("escape")
        assert bench.screen is bench.app.workbench
        assert session.intents == [OpenPlan(runs.T1)]


@pytest.mark.parametrize(
    ("line", "indent"),
    [
        ("tasks:", 2),
        ("  - id: T-1", 4),
        ("    scope:", 6),
        ("    accept_tests:  ", 6),
        ("      - pytest -q", 6),
        ("      - echo a: b", 6),
        ("    goal: x", 4),
        ("", 0),
    ],
)
def test_a_new_line_begins_where_yaml_wants_it(line: str, indent: int) -> None:
    assert indent_after(line) == indent


@pytest.mark.slow
async def test_a_new_task_is_typed_over_its_placeholder_and_indented() -> None:
    text = "  - id: T-4\n    description: what is to be done\n    accept_tests: []\n"
    piece = PlanPiece("PLAN.yaml", "", 0, 0, text, 7, 8, runs.T3, new=True, placeholder="what is to be done")
    session = ScriptedSession(*runs.opening())
    async with driving(session, SMALL) as bench:
        await bench.press("1", "n")
        await bench.answer(PlanOpened(piece))
        await bench.press("ctrl+s")
        assert "nothing was saved" in bench.text()
        assert len(session.intents) == 1
        await bench.press(*"fix: it", "enter", *"goal: x", "tab", "enter", "ctrl+s")
        written = text.replace("what is to be done", "fix: it\n    goal: x \n    ")
        assert session.intents[-1] == EditPlan(piece, written)
        await bench.answer(Accepted())
        assert bench.screen is bench.app.workbench


async def test_long_lines_of_the_plan_wrap() -> None:
    piece = replace(PIECE, text=f"- id: T-2\n  description: {'long ' * 60}end\n")
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("1", "j", "e")
        await bench.answer(PlanOpened(piece))
        assert "long end" in bench.text()
