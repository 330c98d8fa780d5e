"""Fits what each reason for a file counts in the code search, and tells how well it does on repos it was not fitted on.

    python -m bench.fit_retrieval TREES WORK queries.jsonl [more.jsonl …] [--hold-out a,b] [--ablate] [--write]

Queries are those of the retrieval benchmark (`repo`, `query`, `truth`); TREES holds a git checkout for each repo. What
speaks for each file is computed once by the product's own code and kept in WORK.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_workbench.adapters.retrieval.features import Feature
from agent_workbench.adapters.retrieval.scoring import weights
from bench.retrieval_cases import Case, load_cases

Floats = NDArray[np.float64]
FOLDS = 6
# Weights that are near 0 in most folds do better as small ones everywhere: this keeps them small.
STRENGTH = 1e-3
_CANDIDATES = 100
_STEPS = 60
_SHORTEST_STEP, _SLIGHT = 1e-6, 1e-10
WEIGHTS = Path(__file__).parents[1] / "src/agent_workbench/adapters/retrieval/weights.json"


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares of what was looked for among the first 1, 5 and 10 files, and the mean of 1 / place of the first hit."""

    first: float
    five: float
    ten: float
    mrr: float

    @classmethod
    def of(cls, case: Case, scores: Floats) -> "Figures":
        """Return how well the scores rank the case's files."""
        hits = case.wanted[np.argsort(-scores, kind="stable")]
        first, five, ten = (float(hits[:many].sum()) / case.count for many in (1, 5, 10))
        places = np.flatnonzero(hits)
        return cls(first, five, ten, 1 / (1 + int(places[0])) if len(places) else 0.0)

    def __str__(self) -> str:
        return f"R@1 {self.first:.3f}  R@5 {self.five:.3f}  R@10 {self.ten:.3f}  MRR {self.mrr:.4f}"


def mean(figures: Collection[Figures]) -> Figures:
    """Return the mean of each figure."""
    rows = [(each.first, each.five, each.ten, each.mrr) for each in figures]
    return Figures(*np.mean(rows, axis=0).tolist())


class Fitting:
    """The cases of some repos as a convex problem: weights, none below 0, that give what was wanted the most of each
    case's probability. Each repo counts by the root of how many cases it has."""

    def __init__(self, cases: Sequence[Case]) -> None:
        some = [_shortened(case) for case in cases]
        some = [case for case in some if case.wanted.any()]
        self._rows = np.concatenate([case.features for case in some])
        sizes = [len(case.wanted) for case in some]
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._case = np.repeat(np.arange(len(some)), sizes)
        wanted = [case.wanted / case.wanted.sum() for case in some]
        per_repo: dict[str, int] = defaultdict(int)
        for case in some:
            per_repo[case.repo] += 1
        shares = np.array([per_repo[case.repo] ** -0.5 for case in some])
        self._share = (shares / shares.sum())[self._case]
        self._wanted = np.concatenate(wanted) * self._share

    def solve(self, columns: Sequence[int], strength: float = STRENGTH) -> Floats:
        """Return the best weight for each of the columns, by Newton's method on those that are not held at 0."""
        rows = self._rows[:, columns]
        found = np.full(len(columns), 0.5)
        loss, probability = self._loss(rows, found, strength)
        for _ in range(_STEPS):
            slope = rows.T @ (self._share * probability - self._wanted) + 2 * strength * found
            free = (found > 0) | (slope < 0)
            curve = self._curve(rows[:, free], probability) + 2 * strength * np.eye(int(free.sum()))
            step = np.zeros(len(columns))
            step[free] = np.linalg.solve(curve, slope[free])
            size = 1.0
            tried, (lower, then) = found, (loss, probability)
            while size > _SHORTEST_STEP:
                tried = np.maximum(found - size * step, 0.0)
                lower, then = self._loss(rows, tried, strength)
                if lower <= loss:
                    break
                size /= 2
            if loss - lower < _SLIGHT:
                break
            found, loss, probability = tried, lower, then
        return found

    def _loss(self, rows: Floats, given: Floats, strength: float) -> tuple[float, Floats]:
        scores = rows @ given
        scores -= np.maximum.reduceat(scores, self._starts)[self._case]
        powers = np.exp(scores)
        whole = np.add.reduceat(powers, self._starts)[self._case]
        return float(-(self._wanted @ (scores - np.log(whole))) + strength * given @ given), powers / whole

    def _curve(self, rows: Floats, probability: Floats) -> Floats:
        weighed = rows * (probability * self._share)[:, None]
        means = np.add.reduceat(rows * probability[:, None], self._starts)
        shares = self._share[self._starts]
        curve: Floats = rows.T @ weighed - means.T @ (means * shares[:, None])
        return curve


def _shortened(case: Case) -> Case:
    """Return the case with its best files alone, as an even mix ranks them: the others teach nothing."""
    best = np.argsort(-case.features.sum(axis=1), kind="stable")[:_CANDIDATES]
    return Case(case.repo, case.features[best], case.wanted[best], case.count)


def cross_validated(cases: Sequence[Case], columns: Sequence[int], strength: float = STRENGTH) -> dict[str, Figures]:
    """Return by repo how well weights do that were fitted on the other folds' repos."""
    repos = sorted({case.repo for case in cases})
    found: dict[str, Figures] = {}
    for fold in range(FOLDS):
        left_out = set(repos[fold::FOLDS])
        given = Fitting([case for case in cases if case.repo not in left_out]).solve(columns, strength)
        found |= tested([case for case in cases if case.repo in left_out], columns, given)
    return found


def tested(cases: Sequence[Case], columns: Sequence[int], given: Floats) -> dict[str, Figures]:
    """Return by repo how well these weights do."""
    by_repo: dict[str, list[Figures]] = defaultdict(list)
    for case in cases:
        by_repo[case.repo].append(Figures.of(case, case.features[:, columns] @ given))
    return {repo: mean(figures) for repo, figures in by_repo.items()}


def _show(title: str, found: Mapping[str, Figures]) -> None:
    print(f"{title:28s} {mean(list(found.values()))}", flush=True)


def main() -> None:
    """Fit, print, and with `--write` put the weights where the product reads them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("queries", type=Path, nargs="+")
    parser.add_argument("--hold-out", default="", help="repos that are never fitted on, with commas between")
    parser.add_argument("--ablate", action="store_true", help="leave each feature out once")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    held = set(filter(None, asked.hold_out.split(",")))
    cases = load_cases(asked.trees, asked.work, asked.queries)
    names = list(Feature)
    columns = [names.index(feature) for feature in weights()]
    fitted_on = [case for case in cases if case.repo not in held]
    _show("cross-validated", cross_validated(fitted_on, columns))
    if asked.ablate:
        for left_out in columns:
            _show(f"  without {names[left_out]}", cross_validated(fitted_on, [c for c in columns if c != left_out]))
    given = Fitting(fitted_on).solve(columns)
    for column, weight in zip(columns, given.tolist(), strict=True):
        print(f"  {names[column]:16s} {weight:.2f}")
    if held:
        for repo, figures in tested([case for case in cases if case.repo in held], columns, given).items():
            print(f"  held out: {repo:16s} {figures}")
    if asked.write:
        text = json.dumps({names[c]: round(w, 3) for c, w in zip(columns, given.tolist(), strict=True)}, indent=2)
        WEIGHTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
