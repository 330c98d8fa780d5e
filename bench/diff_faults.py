"""`python -m bench.diff_faults`: damaged diffs of real commits, applied by the workbench and by its peers.

Seeds 1 to 5 are for development: what fails under them may be looked at and mended. The seed taken when none is given
is another one; look at its sums alone, or it measures nothing any more.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.faults.change import Change
from bench.faults.judge import Outcome, Verdict, run, tallies, total
from bench.faults.kinds import NAMES, Case, Group, make_case
from bench.faults.report import as_json, each, table
from bench.faults.sources import PACKAGES, PROJECT, SourceError, changes_of_packages, changes_of_repository
from bench.figures import Figure
from bench.patch_peers import OURS, Adapter, Applier, programs

DEVELOPMENT_SEEDS = (1, 2, 3, 4, 5)
SEED = 20261121


def measure(
    commits: int = 60, seed: int = SEED, kinds: Sequence[str] = NAMES, *, packages: bool = True
) -> list[Figure]:
    """Damage diffs of so many changes in every way and count what becomes of them."""
    changes = default_changes(commits, seed, packages=packages)
    with Adapter() as ours:
        appliers: list[Applier] = [ours, *programs()]
        found = tallies(run(cases_of(changes, kinds, seed), appliers))
    figures = [Figure("real changes", len(changes), "changes")]
    for applier in appliers:
        every = total(found, applier.name)
        whole = total(found, applier.name, [Group.WHOLE])
        figures += [
            Figure(f"{applier.name}: right of {whole.cases} that say all", whole.share * 100, "%"),
            Figure(f"{applier.name}: wrong of {every.cases}", every.wrong, "diffs", "0"),
            Figure(f"{applier.name}: a diff", every.milliseconds, "ms"),
        ]
    return figures


def default_changes(commits: int, seed: int, *, packages: bool = True) -> list[Change]:
    """Return changes that can be had anywhere: this project's own history, and releases of packages while online."""
    found: list[Change] = []
    from_packages = commits // 2 if packages else 0
    try:
        found += changes_of_repository(PROJECT, commits - from_packages, seed)
    except SourceError as error:
        print(f"LEFT OUT, the project's own history: {error}", file=sys.stderr)
    if from_packages:
        try:
            found += changes_of_packages(_cache(), from_packages, seed)
        except SourceError as error:
            print(f"LEFT OUT, the releases of {len(PACKAGES)} packages: {error}", file=sys.stderr)
    if not found:
        raise SourceError("there is no change to damage: give a repository with --repo PATH")
    return found


def cases_of(changes: Sequence[Change], kinds: Sequence[str], seed: int) -> Iterator[Case]:
    """Yield every change damaged in every way that is possible with it."""
    for change in changes:
        for name in kinds:
            case = make_case(change, name, seed)
            if case is not None:
                yield case


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit code is 1 if our own applier applied anything wrong."""
    options = _parser().parse_args(arguments)
    unknown = [name for name in options.kinds if not any(name in known for known in NAMES)]
    if unknown:
        print(f"no such kind: {', '.join(unknown)}; the kinds are: {'; '.join(NAMES)}", file=sys.stderr)
        return 2
    kinds = [name for name in NAMES if not options.kinds or any(part in name for part in options.kinds)]
    try:
        changes = _changes(options)
    except SourceError as error:
        print(error, file=sys.stderr)
        return 2
    with ExitStack() as stack:
        ours = stack.enter_context(Adapter(shlex.split(options.adapter) if options.adapter else OURS))
        appliers: list[Applier] = [ours, *([] if options.no_peers else programs())]
        outcomes = list(run(cases_of(changes, kinds, options.seed), appliers))
    _tell(options, changes, outcomes)
    return int(any(o.applier == "ours" and o.verdict in {Verdict.WRONG, Verdict.HALF} for o in outcomes))


def _changes(options: argparse.Namespace) -> list[Change]:
    if not options.repo:
        return default_changes(options.commits, options.seed)
    return [change for path in options.repo for change in changes_of_repository(path, options.commits, options.seed)]


def _tell(options: argparse.Namespace, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
    ours = [outcome for outcome in outcomes if outcome.applier == "ours"]
    shown = frozenset(
        [
            *([Verdict.WRONG, Verdict.HALF] if options.show_wrong else []),
            *([Verdict.REFUSED] if options.show_refused else []),
        ]
    )
    for text in each(ours, shown):
        print(text)
    if options.json:
        print(as_json(outcomes))
    else:
        print(f"{len(changes)} changes, seed {options.seed}\n\n{table(outcomes)}")


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("agent-workbench") / "bench" / "packages"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.diff_faults", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"{SEED} unless told; for development {DEVELOPMENT_SEEDS}"
    )
    parser.add_argument("--commits", type=int, default=60, help="how many changes to damage; of each --repo, if given")
    parser.add_argument("--repo", type=Path, action="append", help="take the history of this repository instead")
    parser.add_argument(
        "--kinds", nargs="+", default=[], metavar="PART", help="only kinds whose names hold one of these"
    )
    parser.add_argument("--adapter", help="a command that answers in our place, see bench/patch_adapter.py")
    parser.add_argument("--no-peers", action="store_true", help="leave git apply and patch out")
    parser.add_argument("--show-wrong", action="store_true", help="print what our applier applied wrong")
    parser.add_argument("--show-refused", action="store_true", help="print what our applier refused")
    parser.add_argument("--json", action="store_true", help="print the sums as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
