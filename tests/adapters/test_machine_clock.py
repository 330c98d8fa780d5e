import re
from datetime import UTC, datetime, timedelta

from agent_workbench.adapters.local_machine import SystemClock, SystemIds
from agent_workbench.core.ids import session_id
from agent_workbench.core.ports.machine import Clock, Ids


def test_sessions_get_names_of_their_own() -> None:
    ids: Ids = SystemIds()
    made = [ids.session() for _ in range(200)]
    assert len(set(made)) == 200
    for each in made:
        assert session_id(each) == each
    started = datetime.strptime(made[-1][:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - started) < timedelta(minutes=1)


def test_the_time_is_utc_with_microseconds() -> None:
    clock: Clock = SystemClock()
    now = clock.now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", now)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(now)) < timedelta(minutes=1)


def test_monotonic_time_does_not_go_back() -> None:
    clock = SystemClock()
    assert clock.monotonic_seconds() <= clock.monotonic_seconds()
