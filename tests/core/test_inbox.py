"""References of the inbox: one spelling only."""

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.inbox import parse_reference

REFERENCE = f"20260102T030405-abc234/P-14@{'0' * 32}"


def test_a_reference_is_read_as_it_is_written() -> None:
    assert str(parse_reference(REFERENCE)) == REFERENCE


@pytest.mark.parametrize(
    "text",
    [
        REFERENCE.replace("P-14", "P-\u0967\u096a"),
        REFERENCE.replace("2026", "\u0662\u0660\u0662\u0666"),
        REFERENCE.replace("14@", "14@" + "0"),
        f"{REFERENCE}\n",
        f" {REFERENCE}",
        f"../{REFERENCE}",
        REFERENCE.upper(),
    ],
    ids=["digits of another script", "year of another script", "longer", "newline", "space", "path", "case"],
)
def test_any_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a reference"):
        parse_reference(text)
