"""Transcript entries of a run of checks: what passed, what failed and why, and what failed before."""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_workbench.core.checks.results import (
    CheckPurpose,
    CheckResult,
    FailedCommand,
    Failure,
    all_passed,
    failed_commands,
)
from agent_workbench.core.events import TestsFinished
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.views.blocks import Block, Entry, Tone

PURPOSES = {
    CheckPurpose.BASELINE: "before any change",
    CheckPurpose.AFTER_DIFF: "after the diff",
    CheckPurpose.ASKED: "asked for by the model",
    CheckPurpose.FINAL: "before the commit",
}
OUTPUT_LINES = 4
WHY_LINES = 3
INDENT_CELLS = 2
FAILED_BEFORE = "failed before the change"


def check_entries(
    seq: int, event: TestsFinished, baseline: tuple[CheckResult, ...] | None = None, root: str = ""
) -> tuple[Entry, ...]:
    """Return a run of checks as a tree: each failed command is followed by an entry for each failure.

    `baseline` are the results before any change (None: unknown, or this is that run). `root` is the folder in which
    they ran.
    """
    failed = {each.result.command: each for each in failed_commands(event.results, baseline, root)}
    entries: list[Entry] = []
    blocks = [_head(event)]
    for result in event.results:
        command = failed.get(result.command)
        if command is None:
            blocks.append(Block(f"✓ {sanitize_line(result.command, 300)}  {result.seconds:.1f} s", Tone.GOOD))
            continue
        blocks += _command_blocks(command)
        entries += _numbered(seq, len(entries), Entry("", tuple(blocks)), *map(_failure_entry, command.failures))
        blocks = [Block(f"… and {command.more} more", Tone.DIM)] if command.more else []
    if event.restored_paths:
        blocks.append(
            Block(
                f"restored, because the checks changed it: {sanitize_line(', '.join(event.restored_paths))}", Tone.WARN
            )
        )
    if event.removed_paths:
        left = sanitize_line(", ".join(event.removed_paths))
        blocks.append(Block(f"removed, because no approved .gitignore covers it: {left}", Tone.DIM))
    if blocks:
        entries += _numbered(seq, len(entries), Entry("", tuple(blocks)))
    return tuple(entries)


def _numbered(seq: int, first: int, *entries: Entry) -> Iterator[Entry]:
    for number, entry in enumerate(entries, first):
        yield replace(entry, key=f"{seq}.{number}" if number else str(seq))


def _head(event: TestsFinished) -> Block:
    passed, good = sum(result.passed for result in event.results), all_passed(event.results)
    count = f"{passed} of {len(event.results)} passed" if not good else "all passed"
    return Block(f"{count}, {PURPOSES[event.purpose]}", Tone.GOOD if good else Tone.BAD, "Checks")


def _command_blocks(command: FailedCommand) -> Iterator[Block]:
    result = command.result
    ended = "did not end" if result.exit_code is None else f"exit {result.exit_code}"
    before = "  failed before, too" if command.before else ""
    line = f"✗ {sanitize_line(result.command, 300)}  {ended}, {result.seconds:.1f} s{before}"
    yield Block(line, Tone.WARN if command.before else Tone.BAD)
    output = sanitize(without_colours(result.output).strip(), limit_chars=60_000)
    if output and command.failures:
        lines = output.count("\n") + 1
        yield Block(output, Tone.DIM, folded=f"⋯ {counted_text(lines, 'line')} of output")
    elif output:
        yield Block(output, Tone.DIM, fold_lines=OUTPUT_LINES, fold_end=True, clips=True)


def _failure_entry(failure: Failure) -> Entry:
    place = failure.place
    where = sanitize_line(f"{place.path}:{place.line}", 300) if place is not None else ""
    tone = Tone.DIM if failure.before else Tone.BAD
    why = "\n".join(map(sanitize, failure.lines))
    why_tone = Tone.DIM if failure.before else Tone.PLAIN
    about = " · ".join(filter(None, (FAILED_BEFORE * failure.before, "" if where in failure.test else where)))
    blocks = (
        Block(f"✗ {sanitize_line(failure.test, 500)}", tone),
        *((Block(why, why_tone, fold_lines=WHY_LINES, clips=True, indent=INDENT_CELLS),) if why else ()),
        *((Block(about, Tone.DIM, indent=INDENT_CELLS),) if about else ()),
    )
    return Entry("", blocks, place)
