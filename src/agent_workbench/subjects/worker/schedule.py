"""Schedules in five fields, as in a crontab, and the time at which one is due next."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.amounts import quoted

_LONGEST = timedelta(days=8 * 366)  # the 29th of February may be that far away
_MOST_CHARS = 200
_HOURS_OF_A_DAY = 24
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EXAMPLE = 'five fields: minute, hour, day of month, month, day of week, as in "*/30 * * * *"'


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)


class Schedule(Struct, frozen=True):
    """A schedule: a moment fits if each of its five parts is in the set of its field; Sunday is 0.

    `either_day`: the month's day and the weekday are both restricted, and one of them is enough (as in cron).
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool = False

    def next_after(self, moment: datetime, zone: tzinfo | None = None) -> datetime:
        """Return the first minute after `moment` that fits, in the time of `zone` (None: the machine's).

        A time that the clock skips in spring is left out, one that it repeats in autumn counts once; with every hour in
        the schedule, real minutes count. Raises `UsageError` if nothing fits within eight years.
        """
        since = moment.astimezone(zone).replace(tzinfo=None)
        at = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = at + _LONGEST
        while at < end:
            local = at.astimezone(zone)
            if local.hour not in self.hours or not self._fits_day(local):
                at += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes or self._repeats(local, since):
                at += timedelta(minutes=1)
            else:
                return local
        raise UsageError("the schedule is never due", advice="its day and month do not occur together")

    def _fits_day(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (day or weekday) if self.either_day else (day and weekday)

    def _repeats(self, local: datetime, since: datetime) -> bool:
        return len(self.hours) < _HOURS_OF_A_DAY and local.replace(tzinfo=None) <= since


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that five fields spell; raise `UsageError` that names the wrong field."""
    words = text.lower().split()
    if len(words) != len(_FIELDS) or len(text) > _MOST_CHARS:
        raise UsageError(f"the schedule {quoted(text)} has {len(words)} fields", advice=f"give {_EXAMPLE}")
    minutes, hours, days, months, weekdays = (
        _values(word, number, field) for number, (word, field) in enumerate(zip(words, _FIELDS, strict=True), 1)
    )
    restricted = not (words[2].startswith("*") or words[4].startswith("*"))
    if not restricted and min(days) > max(_LONGEST_MONTHS[month - 1] for month in months):
        raise _wrong(words[2], 3, _FIELDS[2], "a day that these months have")
    return Schedule(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either_day=restricted)


def _values(word: str, number: int, field: _Field) -> frozenset[int]:
    return frozenset(value for part in word.split(",") for value in _range(part, word, number, field))


def _range(part: str, word: str, number: int, field: _Field) -> range:
    """Return the values of one part of a field: `*`, `5`, `1-5`, each of the first and last with a step `/2`."""
    span, slash, step = part.partition("/")
    if slash and not _is_number(step, 1, field.last or 1):
        raise _wrong(word, number, field, f"a step of 1 to {field.last} after `/`")
    if span == "*":
        first, last = field.first, field.last
    else:
        low, dash, high = span.partition("-")
        if slash and not dash:
            raise _wrong(word, number, field, "`*` or a range before `/`")
        first = _number(low, word, number, field)
        last = _number(high, word, number, field) if dash else first
    if last < first:
        raise _wrong(word, number, field, "a range from low to high")
    return range(first, last + 1, int(step) if slash else 1)


def _number(said: str, word: str, number: int, field: _Field) -> int:
    if said in field.names:
        return field.names.index(said) + field.first
    if not _is_number(said, field.first, field.last):
        named = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise _wrong(word, number, field, f"{field.first} to {field.last}{named}")
    return int(said)


def _is_number(said: str, first: int, last: int) -> bool:
    return said.isascii() and said.isdigit() and len(said) <= len(str(last)) and first <= int(said) <= last


def _wrong(word: str, number: int, field: _Field, expected: str) -> UsageError:
    return UsageError(
        f"field {number} of the schedule ({field.name}) is {quoted(word)}; expected is {expected}",
        advice=f"give {_EXAMPLE}",
    )
