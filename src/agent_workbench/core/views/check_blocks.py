"""A run of checks in the transcript: what passed, what failed, and which tests."""

from agent_workbench.core.checks import CheckPurpose, CheckResult, all_passed
from agent_workbench.core.events import TestsFinished
from agent_workbench.core.inert import inert, inert_line
from agent_workbench.core.views.tones import Block, Tone

PURPOSES = {
    CheckPurpose.BASELINE: "before any change",
    CheckPurpose.AFTER_DIFF: "after the diff",
    CheckPurpose.ASKED: "asked for by the model",
    CheckPurpose.FINAL: "before the commit",
}
SHOWN_TESTS = 20
OUTPUT_LINES = 4


def check_blocks(event: TestsFinished) -> list[Block]:
    """Return the blocks of a run of checks."""
    passed = sum(result.passed for result in event.results)
    good = all_passed(event.results)
    count = f"{passed} of {len(event.results)} passed" if not good else "all passed"
    head = Block(f"{count}, {PURPOSES[event.purpose]}", Tone.GOOD if good else Tone.BAD, "Checks")
    blocks = [head, *(block for result in event.results for block in _result_blocks(result))]
    if event.restored_paths:
        blocks.append(Block(f"put back what they changed: {inert_line(', '.join(event.restored_paths))}", Tone.WARN))
    return blocks


def _result_blocks(result: CheckResult) -> list[Block]:
    line = inert_line(result.command, 300)
    if result.passed:
        return [Block(f"✓ {line}  {result.seconds:.1f} s", Tone.GOOD)]
    ended = "did not end" if result.exit_code is None else f"exit {result.exit_code}"
    failed = [f"  ✗ {inert_line(test, 300)}" for test in result.failed_tests[:SHOWN_TESTS]]
    more = len(result.failed_tests) - SHOWN_TESTS
    failed += [f"  … and {more} more"] if more > 0 else []
    output = inert(result.output.strip(), limit_chars=60_000)
    return [
        Block("\n".join([f"✗ {line}  {ended}, {result.seconds:.1f} s", *failed]), Tone.BAD),
        *([Block(output, Tone.DIM, fold_lines=OUTPUT_LINES, fold_end=True, clips=True)] if output else []),
    ]
