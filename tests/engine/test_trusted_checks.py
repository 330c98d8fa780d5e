"""Tests of the trusted settings run without a question: in a sandbox, for the user's own tasks."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.events import Event, SessionConfigured, TaskStarted
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.settings import Approval, Approvals
from agent_workbench.engine.policy import TRUSTED, ruling
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession

SUITE = "pytest -q"
PART = "pytest -q tests/test_cart.py"


def decided_by(
    command: str = SUITE,
    *,
    origin: TaskOrigin = TaskOrigin.LOCAL,
    sandbox: bool = True,
    headless: bool = True,
    check: Approval = Approval.ONCE,
    diff_by: str = "",
) -> str:
    def told(event: Event) -> Event:
        if isinstance(event, SessionConfigured):
            return replace(event, headless=headless, approvals=Approvals(check=check))
        if isinstance(event, TaskStarted):
            return replace(event, definition=replace(event.definition, origin=origin))
        return event

    _, proposal = runs.diff_step(30, runs.WRONG)
    applied = runs.applied(proposal, diff_by) if diff_by else ()
    events = (*runs.opening(sandbox=sandbox), *runs.started(), *applied)
    state = ScriptedSession(*map(told, events)).newest.state
    purpose = CheckPurpose.AFTER_DIFF if diff_by else CheckPurpose.BASELINE
    found = ruling(state, replace(runs.checks("P-31", purpose), commands=(command,)))
    return found.by if found is not None else ""


@pytest.mark.parametrize("command", [SUITE, PART])
@pytest.mark.parametrize("headless", [True, False], ids=["unattended", "at the screen"])
def test_tests_of_the_trusted_settings_run(command: str, *, headless: bool) -> None:
    assert decided_by(command, headless=headless) == TRUSTED
    assert decided_by(command, headless=headless, diff_by="user") == TRUSTED


@pytest.mark.parametrize("origin", [each for each in TaskOrigin if each is not TaskOrigin.LOCAL])
def test_not_for_a_task_that_is_not_the_users_own(origin: TaskOrigin) -> None:
    assert not decided_by(origin=origin)


def test_not_without_a_sandbox_nor_where_the_user_wants_to_be_asked() -> None:
    assert not decided_by(sandbox=False)
    assert not decided_by(check=Approval.ASK)


def test_not_on_a_change_that_no_person_approved() -> None:
    assert not decided_by(diff_by="policy:diff=auto")


@pytest.mark.parametrize(
    "command", ["make deploy", f"{SUITE}; make deploy", f"{PART} -p evil", f"{SUITE} ../x/test_a.py", f"{SUITE} shop"]
)
def test_no_other_command(command: str) -> None:
    assert not decided_by(command)
