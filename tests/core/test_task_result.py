"""Documents of results: what is written is read, anything else is refused by name."""

import pytest

from agent_workbench.core.errors import StorageError
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskOrigin, TaskStatus
from agent_workbench.core.task_result import CheckOutcome, TaskResult, decode_result, encode_result, no_task

FULL = TaskResult(
    task="T-1",
    status=TaskStatus.DONE,
    reason="committed «ü»",
    exit_code=0,
    origin=TaskOrigin.FORGE,
    source="gitea:owner/repo#7",
    session=SessionId("20260102T030405-abc234"),
    journal_head="20260102T030405-abc234:22:ff",
    branch="agent/T-1",
    commit="c" * 40,
    checks=(CheckOutcome("make", 0, 0.5), CheckOutcome("slow", None, 300.0)),
    files=("a.py",),
    tokens=12,
    dollars=0.5,
    started="2026-01-02T03:04:05.000000Z",
    finished="2026-01-02T03:05:05.000000Z",
)


@pytest.mark.parametrize("result", [FULL, no_task("a.yaml", "a.yaml:1:1: no", "2026-01-02T03:04:05.000000Z")])
def test_what_is_written_is_read(result: TaskResult) -> None:
    document = encode_result(result)
    assert document.isascii()
    assert decode_result(document, "a.result.json") == result


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"version": 1', '"version": 2'),
        ('"done"', '"pending"'),
        ('"done"', '"great"'),
        ('"task"', '"tusk"'),
        ('"tokens": 12', '"tokens": "12"'),
        ('"tokens": 12', '"tokens": NaN'),
        ("{", "["),
    ],
)
def test_anything_else_is_refused_by_name(before: str, after: str) -> None:
    with pytest.raises(StorageError, match=r"^a\.result\.json "):
        decode_result(encode_result(FULL).replace(before, after, 1), "a.result.json")
