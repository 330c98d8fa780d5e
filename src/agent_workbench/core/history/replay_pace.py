"""How fast a recording is played: at the pace at which it was recorded, with long waits cut short."""

from datetime import datetime

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)
SHORTEST_SECONDS = 0.1
LONGEST_SECONDS = 2.0


def faster(speed: float) -> float:
    """Return the next higher speed, the highest one when there is none."""
    return next((each for each in SPEEDS if each > speed), SPEEDS[-1])


def slower(speed: float) -> float:
    """Return the next lower speed, the lowest one when there is none."""
    return next((each for each in reversed(SPEEDS) if each < speed), SPEEDS[0])


def wait_seconds(before: str, after: str, speed: float) -> float:
    """Return how long to show an event of the time `before` until the one of `after` (ISO 8601) is shown."""
    return min(max(_apart(before, after), SHORTEST_SECONDS), LONGEST_SECONDS) / speed


def _apart(before: str, after: str) -> float:
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):  # a journal may hold any text there, with and without a zone
        return 0.0
