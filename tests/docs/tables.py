"""Tables of the documents as rows of cells."""

import re

from tests.architecture.source_tree import ROOT

CELLS = re.compile(r"(?<!\\)\|")


def table_rows(document: str, head: str) -> list[list[str]]:
    """Return the rows of the one table in `document` (relative to the repository) whose head begins with `head`."""
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"| {head} |")]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in CELLS.split(line)[1:-1]])
    return rows
