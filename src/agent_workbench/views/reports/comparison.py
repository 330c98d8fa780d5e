"""Comparison of two sessions as lines of text, for the terminal and the screen."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from agent_workbench.core.history.comparison import ComparedSession, Comparison, RunFigures
from agent_workbench.core.ids import session_suffix
from agent_workbench.core.repo.workspace import FileStat
from agent_workbench.core.text.amounts import dollars_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.gate.proposal_views import DiffView

MAX_FILES = 12
SAME = "Both results have the same files."
NO_FILES = "Git no longer has the files of one of them, so there is no diff."
NOTHING = "·"


def view_comparison(comparison: Comparison) -> DiffView:
    """Return the comparison as notes above the diff from the first result to the second."""
    parting, table, files = parting_line(comparison), table_lines(comparison), file_lines(comparison)
    first, second = session_names(comparison)
    return DiffView(
        f"{first} against {second}",
        f"{comparison.first.session}:{comparison.second.session}",
        (
            Block(parting, Tone.STRONG),
            Block("\n".join(table), space_before=True),
            *((Block("\n".join(files), space_before=True),) if files else ()),
            Block(result_line(comparison), Tone.DIM, space_before=True),
        ),
        comparison.diff or "",
    )


def session_names(comparison: Comparison) -> tuple[str, str]:
    """Return short names that tell the two sessions apart."""
    return session_suffix(comparison.first.session), session_suffix(comparison.second.session)


def parting_line(comparison: Comparison) -> str:
    """Return a line about the point where the sessions diverge."""
    if comparison.parted is None:
        return "They have no common step."
    said = f": {sanitize_line(comparison.common, 160)}" if comparison.common else ""
    return f"They diverge after event {comparison.parted}, step {comparison.step}{said}"


def result_line(comparison: Comparison) -> str:
    """Return a line about the diff below."""
    if comparison.diff is None:
        return NO_FILES
    first, second = session_names(comparison)
    return f"Lines only in {second} (+) and only in {first} (−):" if comparison.diff else SAME


def table_lines(comparison: Comparison) -> tuple[str, ...]:
    """Return a table: a row for each figure, a column for each session; in brackets the part since they diverged."""
    rows = tuple(_rows(comparison))
    label, first = (max(len(row[column]) for row in rows) for column in (0, 1))
    return tuple(f"{row[0]:<{label}}  {row[1]:<{first}}  {row[2]}".rstrip() for row in rows)


def _rows(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    sides = (comparison.first, comparison.second)
    parted = comparison.parted is not None
    yield "", *session_names(comparison)
    yield _row("task", sides, lambda side: side.task or NOTHING)
    yield _row("status", sides, _status)
    yield _row("checks", sides, _checks)
    for label, figure in FIGURES:
        if any(_tells(side.in_all, figure) for side in sides):
            yield _row(label, sides, partial(_with_since, figure=figure, parted=parted))


def _row(label: str, sides: Sequence[ComparedSession], said: Callable[[ComparedSession], str]) -> tuple[str, str, str]:
    first, second = (sanitize_line(said(side), 60) for side in sides)
    return label, first, second


def _status(side: ComparedSession) -> str:
    return NOTHING if side.task is None else side.status or "not finished"


def _checks(side: ComparedSession) -> str:
    if not side.checks:
        return NOTHING
    passed = sum(each.passed for each in side.checks)
    return f"{passed} of {len(side.checks)} passed"


Figure = Callable[[RunFigures], str]
FIGURES: tuple[tuple[str, Figure], ...] = (
    ("steps", lambda it: f"{it.steps:,}"),
    ("answers", lambda it: f"{it.answers:,}"),
    ("prompt tokens, new", lambda it: f"{it.new_tokens:,}"),
    ("prompt tokens, re-read", lambda it: f"{it.again_tokens:,}"),
    ("answer tokens", lambda it: f"{it.answer_tokens:,}"),
    ("seconds worked", lambda it: f"{it.seconds:,.0f}"),
    ("dollars", lambda it: dollars_text(it.dollars) if it.dollars else "0"),
    ("approved", lambda it: f"{it.approved:,}"),
    ("of these in part", lambda it: f"{it.by_hunk:,}"),
    ("rejected", lambda it: f"{it.rejected:,}"),
)


def _tells(amounts: RunFigures, figure: Figure) -> bool:
    return figure(amounts) != figure(RunFigures())


def _with_since(side: ComparedSession, figure: Figure, *, parted: bool) -> str:
    if side.task is None:
        return NOTHING
    since = f" ({figure(side.since)} since)" if parted else ""
    return f"{figure(side.in_all)}{since}"


def file_lines(comparison: Comparison) -> tuple[str, ...]:
    """Return a line for each changed file: the change in the first session, in the second, and the path."""
    sides = [{each.path: each for each in side.files or ()} for side in (comparison.first, comparison.second)]
    paths = sorted({path for files in sides for path in files})
    if not paths:
        return ()
    rows = [tuple(_counts(files.get(path)) for files in sides) for path in paths[:MAX_FILES]]
    heads = session_names(comparison)
    widths = [max(len(heads[column]), *(len(row[column]) for row in rows)) for column in (0, 1)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {sanitize_line(path, 200)}"
        for row, path in zip(rows, paths, strict=False)
    ]
    more = [f"and {len(paths) - MAX_FILES} more files"] if len(paths) > MAX_FILES else []
    return (f"{heads[0]:<{widths[0]}}  {heads[1]:<{widths[1]}}  changed since the base", *lines, *more)


def _counts(stat: FileStat | None) -> str:
    return NOTHING if stat is None else stat.text
