"""Items of the inbox: their risk, their source, and which of them may expire."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import Event, SessionConfigured, TaskStarted
from agent_workbench.core.inbox import InboxItem, may_expire, waiting_item
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.proposals import COMPACT, KEEP_CHANGES, Proposal
from agent_workbench.core.proposed_action import Risk
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import SessionState
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

RISKS = {
    Permission.MERGE: Risk.HIGH,
    Permission.EXTERNAL: Risk.HIGH,
    Permission.INFRASTRUCTURE: Risk.HIGH,
    Permission.COMMAND: Risk.MEDIUM,
    Permission.SCRIPT: Risk.MEDIUM,
    Permission.PLAN: Risk.MEDIUM,
    Permission.READ: Risk.LOW,
    Permission.DIFF: Risk.LOW,
    Permission.CHECK: Risk.LOW,
    Permission.COMMIT: Risk.LOW,
    Permission.SUMMARY: Risk.LOW,
    Permission.FINISH: Risk.LOW,
    Permission.KNOWLEDGE: Risk.LOW,
}


def proposal(kind: Permission, tool: str = "tool", **fields: object) -> Proposal:
    return replace(runs.proposed(kind, tool, "P-1", "text"), **fields)


def waiting(*events: Event) -> tuple[InboxItem, SessionState]:
    session = ScriptedSession(*events)
    item = waiting_item(session.newest.state, session.recorded, "")
    assert item is not None
    return item, session.newest.state


def unattended(*, source: str = "", origin: TaskOrigin = TaskOrigin.LOCAL) -> tuple[Event, ...]:
    """Return the events of an unattended session up to its first diff."""
    changed: list[Event] = []
    for event in runs.up_to_first_diff():
        match event:
            case SessionConfigured():
                changed.append(replace(event, headless=True))
            case TaskStarted():
                changed.append(replace(event, definition=replace(event.definition, source=source, origin=origin)))
            case _:
                changed.append(event)
    return tuple(changed)


def test_every_kind_has_a_risk() -> None:
    assert set(RISKS) == set(Permission)
    assert {kind: proposal(kind).risk(foreign=False, confined=True) for kind in Permission} == RISKS


@pytest.mark.parametrize(
    ("waits", "risk"),
    [
        (proposal(Permission.DIFF, special=(".github/workflows/ci.yml",)), Risk.HIGH),
        (proposal(Permission.DIFF, KEEP_CHANGES), Risk.MEDIUM),
        (proposal(Permission.COMMIT, paths=("a",), reviewed=()), Risk.MEDIUM),
        (proposal(Permission.COMMIT, paths=("a",), reviewed=("a",)), Risk.LOW),
    ],
)
def test_what_nobody_looked_at_is_a_risk(waits: Proposal, risk: Risk) -> None:
    assert waits.risk(foreign=False, confined=True) is risk


@pytest.mark.parametrize("kind", [Permission.CHECK, Permission.COMMAND, Permission.SCRIPT])
def test_what_runs_without_a_sandbox_is_of_the_highest_risk(kind: Permission) -> None:
    assert proposal(kind).risk(foreign=False, confined=False) is Risk.HIGH


@pytest.mark.parametrize("kind", Permission)
def test_a_task_from_outside_raises_the_risk_by_a_level(kind: Permission) -> None:
    outside = proposal(kind).risk(foreign=True, confined=True)
    assert outside.rank == max(0, RISKS[kind].rank - 1)


@pytest.mark.parametrize(
    ("source", "origin", "told", "risk"),
    [
        ("", TaskOrigin.LOCAL, "", Risk.LOW),
        ("gitea:ada/shop#7", TaskOrigin.FORGE, "gitea:ada/shop#7", Risk.MEDIUM),
        ("", TaskOrigin.MCP, "mcp", Risk.MEDIUM),
    ],
)
def test_an_item_tells_where_its_task_comes_from(source: str, origin: TaskOrigin, told: str, risk: Risk) -> None:
    item, _ = waiting(*unattended(source=source, origin=origin))
    assert (item.source, item.risk) == (told, risk)


def test_only_what_an_unattended_session_parked_may_expire() -> None:
    item, state = waiting(*unattended())
    assert may_expire(item, state)
    assert not may_expire(replace(item, holder="pid 7"), state)
    assert state.run is not None
    assert not may_expire(item, replace(state, main=replace(state.run, fork="abc234")))
    assert not may_expire(replace(item, proposal=proposal(Permission.SUMMARY, COMPACT)), state)
    attended, there = waiting(*runs.up_to_first_diff())
    assert not may_expire(attended, there)
