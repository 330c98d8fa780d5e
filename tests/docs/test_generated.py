"""The generated parts of the pages are what the code says now."""

import pytest

from docgen.pages import PARTS, filled, pages, parts_of

TEXTS = {page.name if page.name != "index.md" else str(page): page.read_text("utf-8") for page in pages()}
GENERATED = sorted(name for name, text in TEXTS.items() if parts_of(text))


@pytest.mark.parametrize("page", GENERATED)
def test_the_page_is_up_to_date(page: str) -> None:
    assert filled(TEXTS[page]) == TEXTS[page], "run make docs"


def test_every_part_is_on_one_page() -> None:
    parts = [part for text in TEXTS.values() for part in parts_of(text) if not part.startswith("json ")]
    assert sorted(parts) == sorted(PARTS)


def test_what_is_added_by_hand_is_found() -> None:
    (page,) = [text for text in TEXTS.values() if parts_of(text) == ["exit codes"]]
    assert filled(page.replace("| 0 | done |", "| 0 | fine |")) == page
