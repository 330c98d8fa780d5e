"""How long it takes from a key that is typed to the bytes of what it does."""

import random
import time
from collections.abc import Sequence
from statistics import quantiles

from msgspec import Struct

from bench.figures import Figure, milliseconds
from bench.typed import Region, Typed

# So far apart that each key's effect is painted before the next is typed, and never in step with the frames.
APART_SECONDS, MORE_SECONDS = 0.16, 0.08
AFTER_SECONDS = 0.5
TARGET = "target 50"


class Keys(Struct, frozen=True):
    """Keys that each change the region, and nothing else does."""

    keys: Sequence[str]
    region: Region


class NoEffectError(Exception):
    """Keys had no effect that shows, so there is nothing to measure."""


def latencies(program: Typed, typed: Keys) -> list[float]:
    """Type each key; return the seconds to the first change of the region after it.

    A key whose effect came only after the next one was typed counts with all that time. Raises `NoEffectError` where
    the region changes by itself, or not for every key.
    """
    time.sleep(AFTER_SECONDS)  # what was typed before has been painted then
    program.draw()
    time.sleep(AFTER_SECONDS)
    if program.changes(typed.region):
        raise NoEffectError("what the keys are to change changes by itself")
    pauses = random.Random(11)
    times = []
    for key in typed.keys:
        times.append(program.type(key))
        time.sleep(APART_SECONDS + MORE_SECONDS * pauses.random())
    time.sleep(AFTER_SECONDS)
    return match_effects(times, program.changes(typed.region))


def match_effects(times: Sequence[float], changes: Sequence[float]) -> list[float]:
    """Return for each time how long the first change after it took that is not the effect of one before."""
    found: list[float] = []
    changes_left = list(changes)
    for at, following in zip(times, [*times[1:], float("inf")], strict=True):
        while changes_left and changes_left[0] < at:
            changes_left.pop(0)
        if not changes_left:
            raise NoEffectError(f"{len(times) - len(found)} of {len(times)} keys had no effect")
        effect = changes_left.pop(0)
        found.append(effect - at)
        # An effect is mostly painted in several pieces; those that come before the next key are its own.
        while changes_left and changes_left[0] < following:
            changes_left.pop(0)
    return found


def summed_up(name: str, seconds: Sequence[float], target: str = TARGET) -> list[Figure]:
    """Return median, 95th percentile and the slowest."""
    return [
        milliseconds(f"{name}: median", seconds),
        Figure(f"{name}: p95", percentile_95(seconds) * 1000, "ms", target),
        Figure(f"{name}: slowest of {len(seconds)}", max(seconds) * 1000, "ms"),
    ]


def percentile_95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile, the only value where there is one."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
