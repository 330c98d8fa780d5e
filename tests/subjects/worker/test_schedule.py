"""Schedules: five fields are read, a wrong one is refused by name, and the next time is a pure function."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.subjects.worker.schedule import parse_schedule

SUNDAY = datetime(2026, 3, 1, 10, 7, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("*/30 * * * *", "2026-03-01T10:30"),
        ("* * * * *", "2026-03-01T10:08"),
        ("7 10 * * *", "2026-03-02T10:07"),
        ("0 22-23,1 * * *", "2026-03-01T22:00"),
        ("5,10 * * * *", "2026-03-01T10:10"),
        ("0 0 1 */3 *", "2026-04-01T00:00"),
        ("0 3 * * mon-fri", "2026-03-02T03:00"),
        ("0 3 * * 7", "2026-03-08T03:00"),
        ("0 12 * * 5-7", "2026-03-01T12:00"),
        ("0 0 13 * fri", "2026-03-06T00:00"),
        ("0 0 29 feb *", "2028-02-29T00:00"),
        ("0-59/20 9-17/4 * * *", "2026-03-01T13:00"),
    ],
)
def test_the_next_time(text: str, due: str) -> None:
    assert parse_schedule(text).next_after(SUNDAY, UTC).isoformat()[:16] == due


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("*/30 * * * * *", "has 6 fields"),
        ("@hourly", "has 1 fields"),
        ("60 * * * *", "field 1 of the schedule (minute) is '60'"),
        ("* 24 * * *", "field 2 of the schedule (hour)"),
        ("* * 0 * *", "field 3 of the schedule (day of month)"),
        ("* * * foo *", "field 4 of the schedule (month) is 'foo'; expected is 1 to 12, or jan to dec"),
        ("* * * * 8", "field 5 of the schedule (day of week)"),
        ("*/0 * * * *", "field 1"),
        ("*/ * * * *", "field 1"),
        ("5/10 * * * *", "field 1"),
        ("9-5 * * * *", "field 1"),
        ("1,,2 * * * *", "field 1"),
        ("-1 * * * *", "field 1"),
        ("²  * * * *", "field 1"),
        ("0 0 31 2,4 *", "field 3"),
        ("\x1b[2J * * * *", "field 1"),
        ("1," * 200 + "1 * * * *", "5 fields"),
    ],
)
def test_a_wrong_field_is_named(text: str, named: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_schedule(text)
    assert named in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_time_that_the_clock_skips_is_left_out() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    at_half_past_two = parse_schedule("30 2 * * *")
    first = at_half_past_two.next_after(before, BERLIN)
    assert first.isoformat() == "2026-03-30T02:30:00+02:00", "there is no 02:30 on the 29th"


def test_a_time_that_the_clock_repeats_counts_once() -> None:
    before = datetime(2026, 10, 25, 0, 0, tzinfo=BERLIN)
    first = parse_schedule("30 2 * * *").next_after(before, BERLIN)
    second = parse_schedule("30 2 * * *").next_after(first, BERLIN)
    assert [first.isoformat(), second.isoformat()] == ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]


def test_each_half_hour_is_half_an_hour_whatever_the_clock_shows() -> None:
    moment = datetime(2026, 10, 25, 1, 45, tzinfo=BERLIN)
    found = []
    for _ in range(4):
        moment = parse_schedule("*/30 * * * *").next_after(moment, BERLIN)
        found.append(moment.astimezone(UTC).strftime("%H:%M"))
    assert found == ["00:00", "00:30", "01:00", "01:30"]
