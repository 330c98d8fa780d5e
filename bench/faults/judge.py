"""Whether a damaged diff was applied right, and how the answers add up."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from statistics import median

from msgspec import Struct, field

from bench.faults.kinds import Case, Group
from bench.patch_peers import Applier, Attempt


class Verdict(StrEnum):
    """What one attempt came to. Half: refused, and yet files were changed; it counts as wrong."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"
    HALF = "half"


class Outcome(Struct, frozen=True):
    """One attempt at one case."""

    applier: str
    case: Case
    attempt: Attempt
    verdict: Verdict


class Tally(Struct):
    """The sums of one applier over some cases; `fair` are refusals of diffs whose old lines fit several places."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    fair: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many."""
        return sum(self.counts.values())

    @property
    def right(self) -> int:
        """How many came out as they should."""
        return self.counts[Verdict.RIGHT]

    @property
    def refused(self) -> int:
        """How many were refused that could have been applied."""
        return self.counts[Verdict.REFUSED]

    @property
    def wrong(self) -> int:
        """How many were applied wrong, those that were half applied included."""
        return self.counts[Verdict.WRONG] + self.counts[Verdict.HALF]

    @property
    def share(self) -> float:
        """The right ones of all."""
        return self.right / self.cases if self.cases else 0.0

    @property
    def milliseconds(self) -> float:
        """The median time of a diff."""
        return median(self.seconds) * 1000 if self.seconds else 0.0


def judge(case: Case, attempt: Attempt) -> Verdict:
    """Return what an attempt came to: to the byte, and for every file that it touched."""
    paths = {**case.pre, **case.post, **attempt.post}
    pre, post, got = ({path: texts.get(path) for path in paths} for texts in (case.pre, case.post, attempt.post))
    if got == post:
        return Verdict.RIGHT
    if got == pre:
        return Verdict.REFUSED
    return Verdict.WRONG if attempt.succeeded else Verdict.HALF


def run(cases: Iterable[Case], appliers: Sequence[Applier]) -> Iterator[Outcome]:
    """Yield what every applier makes of every case."""
    for case in cases:
        paths = list({**case.pre, **case.post})
        for applier in appliers:
            attempt = applier.apply(case.patch, case.pre, paths)
            yield Outcome(applier.name, case, attempt, judge(case, attempt))


def tallies(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Tally]:
    """Return the sums by applier and kind, and by applier and group."""
    found: dict[tuple[str, str], Tally] = {}
    for outcome in outcomes:
        for name in (outcome.case.kind, outcome.case.group):
            tally = found.setdefault((outcome.applier, name), Tally())
            tally.counts[outcome.verdict] += 1
            tally.seconds.append(outcome.attempt.seconds)
            tally.fair += outcome.verdict is Verdict.REFUSED and outcome.case.unclear
    return found


def total(found: dict[tuple[str, str], Tally], applier: str, groups: Iterable[Group] = Group) -> Tally:
    """Return the sums of an applier over whole groups."""
    both = Tally()
    for group in groups:
        tally = found.get((applier, group), Tally())
        both.counts += tally.counts
        both.fair += tally.fair
        both.seconds += tally.seconds
    return both
