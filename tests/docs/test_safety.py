import re

from tests.architecture.source_tree import ROOT

STATES = ("kept", "partly", "not yet")


def test_every_promise_has_a_state_and_tests_that_are_there() -> None:
    lines = (ROOT / "docs/explanation/safety.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| G")]
    numbers = [int(row[0].strip().removeprefix("G")) for row in rows]
    assert numbers == sorted({*numbers, *range(1, 15)})
    for name, _, state, held in ([cell.strip() for cell in row] for row in rows):
        assert state.startswith(STATES), name
        tests = re.findall(r"`([^`]+)`", held)
        assert tests or state.startswith("not yet"), name
        assert [each for each in tests if not (ROOT / each).is_file()] == [], name
