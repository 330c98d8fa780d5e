"""Fit of the code search's feature weights, with the results on repositories that were not used for the fit.

    python -m bench.fit_retrieval WORK [--repos fd,flask,bat] [--questions 60] [--embeddings URL] [--eliminate]
                                       [--all] [--ablate] [--write [FILE]]

The repos of `retrieval_repos.json` are cloned below WORK (`WORK/clones/OWNER/NAME.git`, unless they are there), checked
out at their base, and asked by their later commits. What speaks for each file is computed by the product's own code, in
two processes, and kept in WORK: the first run takes half an hour, another one minutes. Weights with vectors are fitted
with those of an embeddings endpoint (`llama-server --embeddings`); without `--embeddings` they stay as they are.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.scoring import KIND_SHARES
from agent_workbench.adapters.retrieval.search_features import KIND_OF, Feature
from bench.retrieval_cases import Case, load_cases
from bench.retrieval_mining import read_repos

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
FOLDS = 6
# Weights that are near 0 in most folds do better as small ones everywhere: this keeps them small.
STRENGTH = 1e-3
# What earns less than this in R@10 and MRR together goes.
_EARNS_NOTHING = 5e-4
_SHARES = np.round(np.arange(0.3, 1.01, 0.1), 1).tolist()
_CANDIDATES = 100
_STEPS = 60
_FEWEST_REPOS = 2
_SHORTEST_STEP, _SLIGHT = 1e-6, 1e-10
WEIGHTS = Path(__file__).parents[1] / "src/agent_workbench/adapters/retrieval/weights.json"


class Figures(Struct, frozen=True):
    """Recall among the first 1, 5 and 10 files, and mean reciprocal rank."""

    first: float
    five: float
    ten: float
    mrr: float

    @classmethod
    def of(cls, wanted: Flags, count: int, scores: Floats) -> "Figures":
        """Return the figures of a ranking by scores; `count` files are wanted."""
        hits = wanted[np.argsort(-scores, kind="stable")]
        first, five, ten = (float(hits[:many].sum()) / count for many in (1, 5, 10))
        places = np.flatnonzero(hits)
        return cls(first, five, ten, 1 / (1 + int(places[0])) if len(places) else 0.0)

    @property
    def both(self) -> float:
        """Sum of R@10 and MRR, which decides between feature sets."""
        return self.ten + self.mrr

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
        self._begin = np.full(self._rows.shape[1], 0.5)  # the last weights found, where the next search begins

    def solve(self, columns: Sequence[int], strength: float = STRENGTH) -> Floats:
        """Return the best weight of each column, by Newton's method on the columns that are not held at 0."""
        rows = self._rows[:, columns]
        found = self._begin[columns]
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
        self._begin[columns] = found
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
    """Return the case with its best files by an unweighted sum; the others do not affect the fit."""
    best = np.argsort(-case.features.sum(axis=1), kind="stable")[:_CANDIDATES]
    return case.among(best)


class Folds:
    """Cross-validation by repository: each fold is tested with weights fitted on the others."""

    def __init__(self, cases: Sequence[Case]) -> None:
        repos = sorted({case.repo for case in cases})
        self._folds: list[tuple[Fitting, list[Case]]] = []
        for fold in range(FOLDS):
            left_out = set(repos[fold::FOLDS])
            kept = Fitting([case for case in cases if case.repo not in left_out])
            self._folds.append((kept, [case for case in cases if case.repo in left_out]))

    def figures(self, features: Collection[Feature]) -> dict[str, Figures]:
        """Return the figures of these features for each repo."""
        columns = columns_of(features)
        found: dict[str, Figures] = {}
        for fitting, left_out in self._folds:
            found |= tested(left_out, columns, fitting.solve(columns))
        return found


def columns_of(features: Collection[Feature]) -> list[int]:
    """Return the columns of the features in a case."""
    return [number for number, feature in enumerate(Feature) if feature in features]


def tested(cases: Sequence[Case], columns: Sequence[int], given: Floats) -> dict[str, Figures]:
    """Return the figures of these weights for each repo."""
    by_repo: dict[str, list[Figures]] = defaultdict(list)
    for case in cases:
        by_repo[case.repo].append(Figures.of(case.wanted, case.count, case.features[:, columns] @ given))
    return {repo: mean(figures) for repo, figures in by_repo.items()}


def left(folds: Folds, features: Sequence[Feature]) -> list[Feature]:
    """Return the features that remain after dropping useless ones one by one, the worst first."""
    kept = list(features)
    best = mean(folds.figures(kept).values()).both
    while True:
        tried = {feature: mean(folds.figures([each for each in kept if each != feature]).values()) for feature in kept}
        poorest = max(tried, key=lambda feature: tried[feature].both)
        print(f"  without {poorest:22s} {tried[poorest]}", flush=True)
        if tried[poorest].both < best - _EARNS_NOTHING:
            return kept
        kept.remove(poorest)
        best = max(best, tried[poorest].both)


def fitted_shares(cases: Sequence[Case], columns: Sequence[int], given: Floats) -> dict[FileKind, float]:
    """Return for each kind of file the share of its score that finds most of all changed files."""
    scores = [case.features[:, columns] @ given for case in cases]
    best = {kind: KIND_SHARES[kind] for kind in (FileKind.TEST, FileKind.DOCUMENT, FileKind.VENDORED)}
    for kind in best:
        found = {share: _among_all(cases, scores, {**best, kind: share}) for share in _SHARES}
        for share, figures in found.items():
            print(f"  {kind.name.lower():12s}{share:.1f}{'':16s} {figures}", flush=True)
        best[kind] = max(found, key=lambda share: found[share].both)
    return best


def _among_all(cases: Sequence[Case], scores: Sequence[Floats], given: Mapping[FileKind, float]) -> Figures:
    by_kind = np.array([given.get(kind, 1.0) for kind in FileKind])
    by_repo: dict[str, list[Figures]] = defaultdict(list)
    for case, score in zip(cases, scores, strict=True):
        by_repo[case.repo].append(Figures.of(case.changed, case.many, score * by_kind[case.kinds]))
    return mean([mean(figures) for figures in by_repo.values()])


def show(title: str, found: Mapping[str, Figures]) -> None:
    """Print the means over the repos."""
    print(f"{title:32s} {mean(list(found.values()))}", flush=True)


def show_beside(title: str, found: Mapping[str, Figures], whole: Mapping[str, Figures]) -> None:
    """Print the means, and the loss of R@10 plus MRR against `whole` with its standard error."""
    lost = np.array([whole[repo].both - figures.both for repo, figures in found.items()])
    error = lost.std(ddof=1) / len(lost) ** 0.5
    print(f"{title:32s} {mean(list(found.values()))}  loses {lost.mean():+.4f} ± {error:.4f}", flush=True)


def main() -> None:
    """Fit and print; with `--write`, write the weights to the product's file or another one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--repos", type=_names, help="these alone: two that are fitted on at least, and one held out")
    parser.add_argument("--questions", type=int, default=60, help="at most so many of each repo")
    parser.add_argument("--embeddings", default="", metavar="URL", help="the endpoint whose vectors are fitted too")
    parser.add_argument("--eliminate", action="store_true", help="drop what earns nothing, one by one")
    parser.add_argument("--all", action="store_true", help="fit and cross-validate on the repos held out as well")
    parser.add_argument("--ablate", action="store_true", help="leave each feature out once")
    parser.add_argument(
        "--write", type=Path, nargs="?", const=WEIGHTS, metavar="FILE", help="the product's own if none"
    )
    asked = parser.parse_args()
    repos = [repo for repo in read_repos() if not asked.repos or repo.name in asked.repos]
    if sum(repo.held_out for repo in repos) < 1 or sum(not repo.held_out for repo in repos) < _FEWEST_REPOS:
        parser.error(f"{len(repos)} repos are too few: {_FEWEST_REPOS} are fitted on, and one is held out")
    held = {repo.name for repo in repos if repo.held_out and not asked.all}
    cases = load_cases(repos, asked.work.resolve(), asked.questions, asked.embeddings)
    sources = [case.among(case.source) for case in cases]
    fitted_on = [case for case in sources if case.repo not in held]
    held_out = [case for case in sources if case.repo in held]
    folds = Folds(fitted_on)
    words: list[Feature] = [feature for feature in Feature if feature != Feature.VECTOR]
    show("cross-validated, all", folds.figures(words))
    if asked.eliminate:
        words = left(folds, words)
    whole = folds.figures(words)
    show("cross-validated", whole)
    fitted = {"without_vectors": words}
    if asked.embeddings:
        fitted["with_vectors"] = [*words, Feature.VECTOR]
        show_beside("  with vectors", folds.figures(fitted["with_vectors"]), whole)
    for groups in _groups(words) if asked.ablate else ():
        show_beside(f"  without {groups[0]}", folds.figures([each for each in words if each not in groups[1]]), whole)
    found: dict[str, dict[str, float]] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    for name, features in fitted.items():
        columns = columns_of(features)
        given = Fitting(fitted_on).solve(columns)
        found[name] = {str(each): round(weight, 3) for each, weight in zip(features, given.tolist(), strict=True)}
        print(f"{name}: {found[name]}")
        figures = tested(held_out, columns, given)
        for repo, each in figures.items():
            print(f"  held out: {repo:20s} {each}")
        if figures:
            show("  held out", figures)
    columns = columns_of(words)
    given = np.array(list(found["without_vectors"].values()))
    print(
        {
            kind.name: share
            for kind, share in fitted_shares([case for case in cases if case.repo not in held], columns, given).items()
        }
    )
    if asked.write:
        asked.write.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


def _groups(words: Sequence[Feature]) -> Sequence[tuple[str, Sequence[Feature]]]:
    """Return the groups of features to leave out: each feature, and all of each kind."""
    kinds = {KIND_OF[feature] for feature in words}
    of_kind = [(f"all {kind}", [each for each in words if KIND_OF[each] == kind]) for kind in sorted(kinds)]
    return [(str(each), [each]) for each in words] + [group for group in of_kind if len(group[1]) > 1]


if __name__ == "__main__":
    main()
