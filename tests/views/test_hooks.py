"""What the gate, the tab, the transcript and the log say of hooks; foreign text in a reason stays text."""

from msgspec.structs import replace

from agent_workbench.core.events import Event, HookAnswered, HookStarted, Recorded, SessionConfigured
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.fold import fold_all
from agent_workbench.core.hook_answers import HookVerdict
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.settings.extensions import ConfiguredHook, HookPoint
from agent_workbench.views.event_entries import hook_blocks
from agent_workbench.views.gate.gate_bar import GateAct, view_gate
from agent_workbench.views.sessions import TabState, view_notification, view_tab
from tests.fakes import runs

EVIL = "\x1b]52;c;eA==\x07[@click=app.approve]yes[/]\u202e"
POINT = HookPoint.DIFF_PROPOSED


def update_after(*more: Event) -> SessionUpdate:
    hook = ConfiguredHook("secrets", (POINT,))
    events = [
        replace(event, hooks=(hook,)) if isinstance(event, SessionConfigured) else event
        for event in runs.up_to_first_diff()
    ]
    return SessionUpdate(fold_all(Recorded(seq, "", event) for seq, event in enumerate((*events, *more))))


def answered(verdict: HookVerdict, reason: str = "", *, failed: bool = False) -> HookAnswered:
    waiting = update_after().state.waiting
    assert waiting is not None
    return HookAnswered("secrets", POINT, verdict, waiting.id, reason, failed=failed)


def test_nobody_is_called_while_a_hook_looks_at_a_proposal_that_can_be_decided() -> None:
    update = update_after()
    gate = view_gate(update)
    assert "hook secrets looks at it" in gate.more
    assert GateAct.APPROVE in gate.acts
    assert (view_tab(update).state, view_notification(update)) == (TabState.RUNNING, None)
    waiting = update.state.waiting
    assert waiting is not None
    begun = update_after(HookStarted("secrets", POINT, waiting.id), answered(HookVerdict.NONE))
    assert "hook" not in view_gate(begun).more
    assert view_notification(begun) is not None


def test_an_objection_is_shown_with_its_reason_and_no_control_codes() -> None:
    waiting = update_after().state.waiting
    assert waiting is not None
    asks = answered(HookVerdict.ASK, EVIL)
    update = update_after(HookStarted("secrets", POINT, waiting.id), asks)
    more = view_gate(update).more
    assert "hook secrets asks: " in more
    (block,) = hook_blocks(asks)
    for text in (more, block.text, log_line(asks)):
        assert "asks: ␛]52;c;eA==␇[@click=app.approve]yes[/]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_no_objection_says_nothing_and_a_failure_does() -> None:
    assert (hook_blocks(answered(HookVerdict.NONE)), log_line(answered(HookVerdict.NONE))) == ([], "")
    failed = HookAnswered("log", HookPoint.TASK_DONE, HookVerdict.NONE, reason="exit code 1", failed=True)
    assert log_line(failed) == "hook log failed at task_done: exit code 1"
    (block,) = hook_blocks(failed)
    assert block.text == "log failed at task_done: exit code 1"
