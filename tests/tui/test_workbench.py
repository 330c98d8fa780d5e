"""Panes, focus, zoom, notes, help, leaving: what keys do besides deciding."""

import pytest
from msgspec.structs import replace
from textual.widgets import TextArea

from agent_workbench.core.events import FAILING_FIRST, ActionDecided, ActionProposed, TaskStarted
from agent_workbench.core.intents import (
    AnswerQuestion,
    DraftTask,
    EditScratchpad,
    Leave,
    MergeTask,
    PlayReplay,
    SayToModel,
    SeekReplay,
    StepReplay,
)
from agent_workbench.core.live import Live, PreflightQuestion, Streaming
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Permission, UiSettings
from agent_workbench.core.tools.spec import REWRITE, ToolSpec
from agent_workbench.tui.bridge import FRAME_SECONDS
from agent_workbench.tui.keys import DIALOG_SCOPES, KEYS, Scope, bindings
from agent_workbench.tui.panes.diff_pane import DiffPane
from agent_workbench.tui.widgets.entry_list import EntryList
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import LARGE, MIDDLE, SMALL, Driver, driving

TRUST = PreflightQuestion(
    "trust", "Trust this repository?", ("its .agent.yml would run:", "  pytest -q"), "trust it", "leave"
)
PANES = {"1": "plan", "2": "steps", "3": "diff", "4": "scratchpad", "5": "code"}
MANY = 5_000
FIRST = runs.diff_step(30, runs.WRONG)[1]


def shown_panes(bench: Driver) -> set[str]:
    return {name for name in PANES.values() if bench.pane(name).display}


@pytest.mark.parametrize(("size", "many"), [(SMALL, 1), (MIDDLE, 5), (LARGE, 5)])
async def test_each_pane_is_reached_by_its_number(size: tuple[int, int], many: int) -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), size) as bench:
        for key, name in PANES.items():
            await bench.press(key)
            assert bench.pane(name).has_focus
            assert name in shown_panes(bench)
            assert len(shown_panes(bench)) == many


@pytest.mark.parametrize(("width", "least"), [(120, 62), (140, 84), (200, 130)])
async def test_the_pane_in_which_something_waits_is_wide_until_it_is_decided(width: int, least: int) -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    async with driving(session, (width, 45)) as bench:
        assert bench.pane("diff").size.width >= least
        assert all(bench.pane(name).size.width >= 20 for name in ("plan", "steps")), "the others can be read"
        await bench.record(ActionDecided(FIRST.id, Verdict.APPROVE, "user"))
        assert bench.pane("diff").size.width < least


@pytest.mark.parametrize("size", [SMALL, MIDDLE, LARGE])
async def test_the_bar_tells_keys_from_words_and_always_names_the_help(size: tuple[int, int]) -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), size) as bench:
        hints = bench.text().splitlines()[-2].strip().split(" │ ")
        assert hints[:2] == ["approve: a", "reject: r"]
        assert "help: ?" in hints
        assert all(len(hint.split(": ")) == 2 for hint in hints)


async def test_tab_goes_round_through_all_panes_and_the_bar() -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL) as bench:
        seen = []
        for _ in range(6):
            await bench.press("tab")
            seen.append(bench.app.workbench.focused)
        assert [widget.id for widget in seen if widget] == ["steps", "diff", "scratchpad", "code", "gate", "plan"]


async def test_zoom_gives_one_pane_all_the_room_and_back() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        await bench.press("z")
        assert shown_panes(bench) == {"plan"}
        assert bench.pane("plan").size.width > 150
        assert "Must pass" in bench.text()
        await bench.press("z")
        assert len(shown_panes(bench)) == 5
        assert "Must pass" not in bench.text()


async def test_a_small_terminal_shows_what_happens_while_the_user_is_at_the_bar() -> None:
    session = ScriptedSession(*runs.up_to_reflexion())
    async with driving(session, SMALL) as bench:
        await bench.press("0")
        await bench.live(Live(activity="thinking", streaming=Streaming("Thought: Now I mult", 5, 1.0)))
        assert "Now I mult" in bench.text()
        await bench.live(
            Live(activity="thinking", streaming=Streaming("Thought: x\nAction: write_diff\n--- a/y.py\n", 9, 1))
        )
        assert "Diff · being written" in bench.text()
        assert "y.py" in bench.text()


async def test_a_diff_grows_while_it_is_written() -> None:
    async with driving(ScriptedSession(*runs.up_to_reflexion())) as bench:
        text = f"Thought: times.\nAction: write_diff\n{runs.RIGHT}"
        for end in range(40, len(text), 60):
            await bench.live(Live(activity="thinking", streaming=Streaming(text[:end], end, 1.0)))
        assert "+     return sum(line.cents * " in bench.text()


REWRITES = ToolSpec(REWRITE, "give pieces their new text", Permission.DIFF, fenced=True)
NEW_TEXT = """Piece 1
```python
def total(lines: list[Line]) -> int:
    \"\"\"Return the price of \x1b[31mall lines.\"\"\"
    return sum(line.cents * line.qu"""


async def test_a_rewritten_piece_is_shown_as_its_diff_so_far() -> None:
    events = [
        replace(each, wording=FAILING_FIRST, specs=(REWRITES,)) if isinstance(each, TaskStarted) else each
        for each in (*runs.opening(), *runs.started(), *runs.retrieved())
    ]
    async with driving(ScriptedSession(*events)) as bench:
        pane = bench.pane("diff")
        assert isinstance(pane, DiffPane)
        shown = list[tuple[str, ...]]()
        for end in range(0, len(NEW_TEXT) + 1, 7):
            text = f"Thought: times.\nAction: rewrite\n{NEW_TEXT[:end]}"
            await bench.live(Live(activity="thinking", streaming=Streaming(text, end + 1, 1.0)))
            shown.append(tuple(line for line in pane.view.diff.split("\n") if line[:1] in "-+ "))
        # What the model did not reach yet is not deleted.
        assert not any("return sum(line.cents for" in line for lines in shown for line in lines)
        assert pane.view.title == "Diff · being written"
        assert pane.view.diff.startswith("--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -15,1 +15,2 @@\n def total(")
        assert "\x1b" not in "".join(line.text for line in pane.diff.shown.lines)
        assert '+     """Return the price of' in bench.text()


async def test_a_terminal_that_is_too_small_is_told_so() -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL) as bench:
        await bench.resize(50, 10)
        assert "too small" in bench.text()
        await bench.resize(80, 24)
        assert "too small" not in bench.text()
        assert "T-1" in bench.text()


@pytest.mark.parametrize("dialogue", ["", "?"])
async def test_the_focus_is_where_it_was_when_the_terminal_is_large_enough_again(dialogue: str) -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL) as bench:
        await bench.press("3", *dialogue)
        await bench.resize(50, 10)
        await bench.resize(80, 24)
        await bench.press(*("escape" for _ in dialogue))
        assert bench.pane("diff").has_focus
        assert shown_panes(bench) == {"diff"}


async def test_the_end_of_the_steps_is_followed_only_from_the_end() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        steps = bench.pane("steps")
        assert steps.scroll_offset.y == steps.max_scroll_y
        await bench.press("2", "g")
        await bench.record(*runs.applied(runs.diff_step(30, runs.WRONG)[1])[1:])
        assert steps.scroll_offset.y == 0
        await bench.press("G")
        before = steps.max_scroll_y
        await bench.record(*runs.diff_step(50, runs.RIGHT)[0])
        assert steps.scroll_offset.y == steps.max_scroll_y > before


async def test_the_steps_of_a_task_that_begins_are_gone_to() -> None:
    async with driving(ScriptedSession(*runs.up_to_done())) as bench:
        steps = bench.pane("steps")
        await bench.press("2", "g", "0")
        assert steps.scroll_offset.y == 0
        await bench.record(*runs.started())
        assert steps.scroll_offset.y == steps.max_scroll_y > 0


async def test_an_entry_is_expanded_and_folded() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        steps = bench.pane("steps")
        folded = len(steps.rows)
        await bench.press("2", "o")
        assert len(steps.rows) > folded
        await bench.press("o")
        assert len(steps.rows) == folded
        hidden = next(at for at, row in enumerate(steps.rows) if "lines more" in row.spans[-1][0])
        await bench.steps.entry(steps.rows[hidden].item + 1).expand()
        assert len(steps.rows) > folded


async def test_thousands_of_events_are_added_without_laying_out_those_before() -> None:
    session = ScriptedSession(*runs.up_to_first_diff())
    events = [event for number in range(MANY // 4) for event in (*runs.answered(number, "Thought: again"),) * 2]
    session.record(*events)
    async with driving(session) as bench:
        steps = bench.pane("steps")
        assert isinstance(steps, EntryList)
        assert len(steps.entries) > MANY - 100
        first, asked = steps.rows[0], []
        lay_out = steps._window._rows_of

        def counted(*arguments: object) -> object:
            asked.append(arguments)
            return lay_out(*arguments)  # type: ignore[arg-type] # handed on as they came

        steps._window._rows_of = counted  # type: ignore[assignment] # to count the calls
        await bench.record(*runs.answered(2000, "Thought: one more"))
        assert steps.rows[0] is first
        assert len(asked) == 2


async def test_retrieved_code_is_shown_on_demand_and_coloured() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), LARGE) as bench:
        await bench.press("5", "j", "enter")
        code = bench.pane("code")

        def colours() -> int:
            row = next(row for row in code.rows if "".join(text for text, _ in row.spans).endswith("in lines)"))
            return len({str(style) for _, style in row.spans})

        await bench.until(lambda: colours() > 3)


async def test_notes_are_edited_and_sent_with_what_they_were() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await bench.press("4", "i")
        area = bench.screen.query_one(TextArea)
        before = area.text
        area.text = before + "- ask Mia\n"
        await bench.press("ctrl+s")
        assert bench.session.intents == [EditScratchpad(runs.T1, before, before + "- ask Mia\n")]


@pytest.mark.slow
async def test_what_is_typed_into_notes_stands_behind_them() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        await bench.press("4", "i")
        before = bench.screen.query_one(TextArea).text
        await bench.press(*"- x", "ctrl+s")
        assert bench.session.intents == [EditScratchpad(runs.T1, before, before + "- x")]


async def test_while_the_session_is_opened_no_keys_are_offered_that_do_nothing() -> None:
    async with driving(ScriptedSession().show(Live(activity="opening the session"))) as bench:
        await bench.press("1")
        assert "opening the session" in bench.text()
        assert "merge" not in bench.text()


async def test_a_done_task_is_merged_from_the_plan() -> None:
    async with driving(ScriptedSession(*runs.up_to_done())) as bench:
        await bench.press("1", "g", "m")
        assert bench.session.intents == [MergeTask(runs.T1)]


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_leaving_waits_for_the_session_and_returns_its_last_update(key: str) -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        bench.session.ends_when_left = False
        await bench.press(key)
        assert bench.session.intents == [Leave()]
        assert bench.app.is_running
        bench.session.end("see you")
        await bench.idle()
        assert bench.app.return_value is bench.session.newest
        assert bench.session.newest.farewell == "see you"


async def test_leaving_twice_does_not_wait() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        bench.session.ends_when_left = False
        await bench.press("q", "q")
        assert bench.app.return_value is bench.session.newest


async def test_a_session_that_ends_closes_the_workbench() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        bench.session.end("over")
        await bench.idle()
        assert bench.app.return_value is not None


async def test_the_help_begins_with_the_focused_pane_has_every_key_and_can_be_searched() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        await bench.press("5", "?")
        keys, elsewhere = bench.screen.query(EntryList)
        assert "Retrieved code (focused)" in keys.entries[0].blocks[0].text
        assert len(keys.entries) + len(elsewhere.entries) == len(KEYS)
        await bench.resize(*SMALL)
        assert len(keys.entries) == len(KEYS)
        await bench.press("slash", *"take hunk", "enter")
        assert [entry.key for entry in keys.entries] == ["Diff.take_hunk"]
        await bench.press("slash", "escape")
        assert len(keys.entries) == len(KEYS)
        await bench.press("escape", "escape")
        assert bench.screen.name == "workbench"


async def test_a_question_is_asked_and_answered_once() -> None:
    async with driving(ScriptedSession().show(Live(question=TRUST))) as bench:
        assert "pytest -q" in bench.text()
        await bench.press("y")
        assert bench.session.intents == []
        await bench.look()
        await bench.press("enter")
        assert bench.session.intents == [], "nobody trusts in passing"
        await bench.press("y")
        assert bench.session.intents == [AnswerQuestion("trust", True)]
        await bench.record(*runs.opening())
        assert bench.screen.name == "workbench"


async def test_a_question_that_was_settled_elsewhere_goes_away() -> None:
    async with driving(ScriptedSession().show(Live(question=TRUST))) as bench:
        assert bench.screen.name == "question"
        await bench.live(Live())
        assert bench.screen.name == "workbench"


async def test_the_first_start_asks_and_then_explains_itself() -> None:
    async with driving(ScriptedSession().show(Live(question=TRUST)), SMALL, first_run=True) as bench:
        assert bench.screen.name == "question"
        await bench.look()
        await bench.press("y")
        assert bench.session.intents == [AnswerQuestion("trust", True)]
        bench.session.show(Live())
        await bench.record(*runs.opening())
        assert "in a copy of your repository" in bench.text()
        await bench.press("right", "enter")
        assert "By hunk" in bench.text()
        await bench.press("escape")
        assert bench.screen.name == "workbench"


async def test_a_question_is_answered_by_its_two_keys_alone_and_not_in_passing() -> None:
    async with driving(ScriptedSession().show(Live(question=TRUST))) as bench:
        await bench.press("n")
        await bench.look()
        await bench.press("escape", "q", "enter")
        assert bench.screen.name == "question"
        assert bench.session.intents == []
        await bench.press("n")
        assert bench.session.intents == [AnswerQuestion("trust", False)]


async def test_words_typed_while_the_session_opens_answer_no_question_and_become_a_task() -> None:
    async with driving(ScriptedSession()) as bench:
        await bench.press(":", *"many")
        await bench.live(Live(question=TRUST))
        assert bench.screen.name == "line"
        await bench.look()
        await bench.press(*"yes", "enter")
        assert bench.screen.name == "question"
        assert bench.session.intents == []
        await bench.look()
        await bench.press("y")
        bench.session.show(Live())
        await bench.record(*runs.opening())
        assert bench.session.intents == [AnswerQuestion("trust", True), DraftTask("manyyes", seen=True)]


async def test_words_typed_before_a_task_is_taken_up_again_are_not_sent_to_the_model() -> None:
    async with driving(ScriptedSession()) as bench:
        await bench.press(":", *"more", "enter")
        await bench.record(*runs.up_to_first_diff())
        assert bench.screen.name == "line"
        assert "To the model" in bench.text()
        assert bench.session.intents == []
        await bench.press("enter")
        assert bench.session.intents == [SayToModel("more")]


async def test_a_question_waits_for_the_screen_above_the_panes() -> None:
    async with driving(ScriptedSession()) as bench:
        await bench.press("question_mark")
        await bench.live(Live(question=TRUST))
        assert bench.screen.name == "help"
        await bench.press("escape")
        assert bench.screen.name == "question"


async def test_the_first_screen_of_the_demo_says_that_the_answers_are_scripted() -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL, first_run=True) as bench:
        assert "answers are scripted" in bench.text()
    async with driving(ScriptedSession(*runs.opening(scripted=False)), SMALL, first_run=True) as bench:
        assert "scripted" not in bench.text()


async def test_a_small_terminal_goes_back_to_the_plan_when_a_task_is_over() -> None:
    session = ScriptedSession(*runs.up_to_commit())
    async with driving(session, SMALL) as bench:
        await bench.record(*runs.up_to_done()[len(runs.up_to_commit()) :])
        assert shown_panes(bench) == {"plan"}


async def test_a_notice_is_shown_once() -> None:
    async with driving(ScriptedSession(*runs.opening())) as bench:
        bench.session.notify("the plan changed on disk")
        await bench.idle()
        assert "the plan changed on disk" in bench.text()
        await bench.record(*runs.started())
        assert bench.text().count("the plan changed on disk") == 1


async def test_notices_that_come_within_one_frame_are_all_shown() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        bench.session.notify("the plan changed on disk").notify("the worktree was made again").record(*runs.started())
        await bench.idle()
        assert "the plan changed on disk" in bench.text()
        assert "the worktree was made again" in bench.text()


async def test_a_refused_intent_says_why() -> None:
    session = ScriptedSession(*runs.opening())
    session.outcome = Refused("a task is being worked on")
    async with driving(session) as bench:
        await bench.press("enter")
        assert len(session.intents) == 1
        assert "a task is being worked on" in bench.text()


async def test_a_replay_moves_by_keys_and_decides_nothing() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()).as_replay(seq=60)) as bench:
        await bench.look()
        await bench.press("right", "l", "left", "h", "]", "[", "home", "end", "space")
        assert bench.session.intents == [
            *(StepReplay(1), StepReplay(1), StepReplay(-1), StepReplay(-1), StepReplay(10), StepReplay(-10)),
            *(SeekReplay(0.0), SeekReplay(1.0), PlayReplay(True)),
        ]
        bench.session.intents.clear()
        await bench.press("a", "r", "A", "s")
        assert bench.session.intents == []
        assert "approve: a" not in bench.text()


async def test_a_replay_that_goes_back_shows_what_was_then() -> None:
    session = ScriptedSession(*runs.up_to_first_diff()).as_replay()
    async with driving(session) as bench:
        assert "write_diff" in bench.text()
        earlier = ScriptedSession(*runs.up_to_first_diff()[:8]).as_replay(seq=20)
        session.newest = earlier.newest
        session.show(earlier.newest.live)
        await bench.idle()
        assert "write_diff" not in bench.text()


async def test_the_palette_has_every_action() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff())) as bench:
        commands = {command.title for command in bench.app.get_system_commands(bench.screen)}
        for key in KEYS:
            if key.scope not in (Scope.SCROLL, Scope.ALWAYS, Scope.REPLAY, Scope.ADVICE, *DIALOG_SCOPES):
                assert f"{key.scope}: {key.label}" in commands


async def test_a_theme_and_a_key_that_do_not_exist_are_said_so() -> None:
    async with driving(ScriptedSession(*runs.opening()), keys={"aprove": "f2"}) as bench:
        assert "no key named 'aprove'" in bench.text()


async def test_a_merge_that_runs_is_not_aborted_and_says_so() -> None:
    merge = runs.merge()
    events = runs.approved(merge)
    async with driving(ScriptedSession(*runs.up_to_done(), *events)) as bench:
        await bench.press("X")
        assert "T-1 is being merged" in " ".join(bench.text().split())
        assert bench.session.intents == []


async def test_a_merge_with_obstacles_shows_them() -> None:
    blocked = runs.merge(obstacles=("shop/cart.py has changes of yours in the way",))
    async with driving(ScriptedSession(*runs.up_to_done(), ActionProposed(blocked)), SMALL) as bench:
        assert "It cannot be merged now" in bench.text()
        assert "changes of yours in the way" in bench.text()


def test_each_binding_has_an_action_that_exists() -> None:
    from agent_workbench.subjects.audit.screen import AuditScreen
    from agent_workbench.subjects.dispatch.screen import PlanProgressScreen
    from agent_workbench.subjects.inbox.screen import InboxScreen
    from agent_workbench.subjects.knowledge.screen import KnowledgeScreen
    from agent_workbench.subjects.models.screen import ModelsScreen
    from agent_workbench.tui.app import WorkbenchApp
    from agent_workbench.tui.panes.diff_pane import DiffPane
    from agent_workbench.tui.panes.plan import PlanPane
    from agent_workbench.tui.panes.side_panes import AdvicePane, CodePane, ScratchpadPane
    from agent_workbench.tui.panes.steps import StepsPane
    from agent_workbench.tui.screens.code import CodeSearchScreen, FileScreen, PieceScreen
    from agent_workbench.tui.screens.help import HelpScreen, TourScreen
    from agent_workbench.tui.screens.plan_text import TaskDraftDialog
    from agent_workbench.tui.screens.receipt import ReceiptScreen
    from agent_workbench.tui.screens.review import ComparisonScreen, RecordingSearchScreen, ReviewScreen
    from agent_workbench.tui.screens.rules import RuleOfferDialog, RulesScreen
    from agent_workbench.tui.screens.sessions import SessionsScreen
    from agent_workbench.tui.session.session_tab import SessionScreen
    from agent_workbench.tui.widgets.gate_bar import GateBar
    from agent_workbench.tui.widgets.replay_bar import ReplayBar

    owners: dict[Scope, tuple[type, ...]] = {
        Scope.GATE: (GateBar,),
        Scope.REPLAY: (ReplayBar,),
        Scope.PLAN: (PlanPane,),
        Scope.STEPS: (StepsPane,),
        Scope.DIFF: (DiffPane,),
        Scope.SCRATCHPAD: (ScratchpadPane,),
        Scope.CODE: (CodePane,),
        Scope.ADVICE: (AdvicePane,),
        Scope.KNOWLEDGE: (KnowledgeScreen,),
        Scope.PIECE: (PieceScreen,),
        Scope.FIND: (CodeSearchScreen,),
        Scope.SEARCH: (RecordingSearchScreen,),
        Scope.RECEIPT: (ReceiptScreen,),
        Scope.REVIEW: (ReviewScreen,),
        Scope.FILE: (FileScreen,),
        Scope.TOUR: (TourScreen,),
        Scope.HELP: (HelpScreen,),
        Scope.COMPARISON: (ComparisonScreen,),
        Scope.SESSIONS: (SessionsScreen,),
        Scope.DRAFT: (TaskDraftDialog,),
        Scope.ALLOW: (RuleOfferDialog,),
        Scope.MODELS: (ModelsScreen,),
        Scope.RULES: (RulesScreen,),
        Scope.INBOX: (InboxScreen,),
        Scope.AUDIT: (AuditScreen,),
        Scope.PROGRESS: (PlanProgressScreen,),
        Scope.SCROLL: (GateBar, ReplayBar, PlanPane, StepsPane, DiffPane, ScratchpadPane, CodePane, AdvicePane),
        Scope.EVERYWHERE: (SessionScreen,),
        Scope.ALWAYS: (WorkbenchApp,),
    }
    assert set(owners) == set(Scope)
    for key in KEYS:
        for owner in owners[key.scope]:
            assert hasattr(owner, f"action_{key.action}"), (owner, key.action)
    assert len(bindings(*Scope)) == len(KEYS)


def test_the_screen_is_painted_at_most_twenty_five_times_a_second() -> None:
    assert FRAME_SECONDS >= 1 / 25


async def test_the_users_theme_and_keys_count_from_when_the_settings_were_read() -> None:
    async with driving(ScriptedSession(*runs.opening()), LARGE) as bench:
        await bench.live(Live(ui=UiSettings(theme="nord", keys=(("zoom", "f6"), ("no_such_key", "f7")))))
        assert bench.app.theme == "nord"
        await bench.press("f6")
        assert shown_panes(bench) == {"plan"}
        await bench.until(lambda: "no_such_key" in bench.text())


@pytest.mark.slow
async def test_every_theme_can_be_chosen() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        for theme in bench.app.available_themes:
            bench.app.theme = theme
            await bench.idle()
            assert "return sum(line.cents" in bench.text(), theme
