from dataclasses import dataclass
from dataclasses import replace as slowly

import pytest

from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.replacing import replace
from agent_workbench.core.state import Phase, SessionState
from tests.core.test_fold import run_after


def test_is_what_dataclasses_make_of_it() -> None:
    run = run_after()
    made = replace(run, phase=Phase.OVER, status=TaskStatus.DONE)
    assert (made, hash(made)) == (slowly(run, phase=Phase.OVER, status=TaskStatus.DONE), hash(made))
    assert run.phase is Phase.BASELINE
    assert replace(SessionState(), run=run) == slowly(SessionState(), run=run)


def test_no_field_is_made_up() -> None:
    with pytest.raises(TypeError, match="TaskRun has no field 'fase'"):
        replace(run_after(), fase=Phase.OVER)  # type: ignore[call-arg]  # what is tried


def test_a_value_with_slots_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Slotted:
        field: int = 0

    with pytest.raises(AttributeError):
        replace(Slotted(), field=1)
