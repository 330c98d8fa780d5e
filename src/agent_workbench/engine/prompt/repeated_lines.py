"""Lines that a prompt already shows: they are not sent twice."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from agent_workbench.core.events import ContextCompacted, PatchApplied, Recorded
from agent_workbench.core.proposals import OURS, Proposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.steps import newest_steps
from agent_workbench.core.tools.spec import REWRITE

LEAST_LINES = 4
"""Fewer lines in a row are left where they repeat: the cut would be as long as they are."""
LEAST_REST = 3
"""Fewer lines beside a run are context of the diff that shows it."""


def is_as_written(proposal: Proposal) -> bool:
    """Return True if the model's own answer has every line that the applied diff adds."""
    if proposal.edited or proposal.hunks or proposal.tool in OURS:
        return False
    if proposal.tool == REWRITE:
        return added_lines(proposal.diff) <= {line.strip() for line in proposal.text.split("\n")}
    return sorted(_added(proposal.text)) == sorted(_added(proposal.diff))


def added_lines(diff: str) -> frozenset[str]:
    """Return the lines that a diff adds, without blanks around them."""
    return frozenset(line.strip() for line in _added(diff)) - {""}


def removed_lines(diff: str) -> frozenset[str]:
    """Return the lines that a diff removes, without blanks around them."""
    removed = (line[1:] for line in diff.split("\n") if line.startswith("-") and not line.startswith("--- "))
    return frozenset(line.strip() for line in removed) - {""}


def change_shown(history: Sequence[Recorded]) -> frozenset[str]:
    """Return the changed lines that the next prompt shows, in diffs, observations or a compaction."""
    shown: frozenset[str] = frozenset()
    compacted = next((each.event for each in reversed(history) if isinstance(each.event, ContextCompacted)), None)
    through_seq = compacted.through_seq if compacted is not None else -1
    for step in newest_steps(history):
        if step.applied is not None and step.applied.seq > through_seq:
            shown |= _shown_with(step.proposal, step.applied.event)
    return shown | added_lines(compacted.diff) if compacted is not None else shown


def without_repeated(text: str, shown: Collection[str]) -> str:
    """Return the text with each longer run of lines that are `shown` elsewhere replaced by their number."""
    lines = text.split("\n")
    kept: list[str] = []
    end = 0
    for run in _runs(lines, shown):
        kept += [*lines[end : run.start], f"… {len(run)} lines of the change cut …"]
        end = run.stop
    return "\n".join([*kept, *lines[end:]])


def split_repeated(chunk: Chunk, shown: Collection[str]) -> tuple[tuple[Chunk, ...], tuple[Chunk, ...]]:
    """Return the parts of a chunk that are not shown yet, and those whose lines are `shown` elsewhere."""
    lines = chunk.text.split("\n")
    cuts = list(_grown(lines, _runs(lines, shown)))
    if not cuts:
        return (chunk,), ()
    starts, ends = [0, *(cut.stop for cut in cuts)], [*(cut.start for cut in cuts), len(lines)]
    rests = [range(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    return tuple(_piece(chunk, lines, rest) for rest in rests), tuple(_piece(chunk, lines, cut) for cut in cuts)


def _shown_with(proposal: Proposal, applied: PatchApplied) -> frozenset[str]:
    if is_as_written(proposal):
        return added_lines(proposal.diff)
    return frozenset(line.strip() for chunk in applied.shown for line in chunk.text.split("\n")) - {""}


def _added(diff: str) -> Iterator[str]:
    return (line[1:].rstrip() for line in diff.split("\n") if line.startswith("+") and not line.startswith("+++ "))


def _runs(lines: Sequence[str], shown: Collection[str]) -> Iterator[range]:
    """Yield the ranges of shown lines; blank lines between them are included, blank lines at the ends are not."""
    start, last, count = 0, -1, 0
    for at, line in enumerate([*lines, "\0"]):
        text = line.strip()
        if text in shown:
            start, last, count = (at if not count else start), at, count + 1
        elif text:
            if count >= LEAST_LINES:
                yield range(start, last + 1)
            count = 0


def _grown(lines: Sequence[str], runs: Iterator[range]) -> Iterator[range]:
    """Yield the ranges, extended over short gaps between and around them."""
    grown: list[range] = []
    for run in runs:
        end = grown[-1].stop if grown else 0
        near = _count(lines[end : run.start]) < LEAST_REST
        if near and grown:
            grown[-1] = range(grown[-1].start, run.stop)
        else:
            grown.append(range(end if near else run.start, run.stop))
    if grown and _count(lines[grown[-1].stop :]) < LEAST_REST:
        grown[-1] = range(grown[-1].start, len(lines))
    yield from grown


def _count(lines: Sequence[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


def _piece(chunk: Chunk, lines: Sequence[str], at: range) -> Chunk:
    text = "\n".join(lines[at.start : at.stop])
    tokens = chunk.tokens * len(at) // max(1, len(lines))
    first = chunk.first_line + at.start
    return replace(chunk, first_line=first, last_line=first + len(at) - 1, text=text, tokens=tokens)
