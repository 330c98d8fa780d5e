"""Imports of a file as a chunk of their own, without the rows that other chunks show."""

import pytest

from agent_workbench.core.repo.retrieval import IMPORTS, MOST_ROWS, imports_chunk

PYTHON = (
    '"""Cart.\n\nuse it as ever\n"""\n\nimport os\ntry:\n    import json\nexcept ImportError:\n    json = None\n'
    "\nfrom a import (\n    b,\n)\n\nX = 1\nimport late\n"
)
GO = 'package shop\n\nimport (\n\t"fmt"\n)\n\nfunc Put() {}\n'
RUST = "//! Shop.\nuse std::{\n    fmt,\n};\npub use a::b;\nfn main() {}\n"
C = "/* x */\n#include <a.h>\n#if X\n#include <b.h>\n#endif\nint main() {}\n"
TYPESCRIPT = "import {\n  a,\n} from 'a';\nconst b = require('b');\nexport const c = 1;\n"


@pytest.mark.parametrize(
    ("path", "text", "taken", "place"),
    [
        ("a.py", PYTHON, [], (6, 14)),
        ("a.py", PYTHON, [range(15, 17)], (6, 14)),
        ("a.py", PYTHON, [range(8, 17)], (6, 8)),
        ("a.py", PYTHON, [range(6)], None),
        ("a.py", "def a():\n    import b\n", [], None),
        ("a.go", GO, [], (1, 5)),
        ("a.rs", RUST, [], (2, 5)),
        ("a.C", C, [], (2, 4)),
        ("a.ts", TYPESCRIPT, [], (1, 4)),
        ("a.md", "import this\nfrom x import y\n", [], None),
        ("a.py", "import a\n" * 150, [], (151 - MOST_ROWS, 150)),
    ],
)
def test_the_imports_at_the_head(path: str, text: str, taken: list[range], place: tuple[int, int] | None) -> None:
    lines = text.split("\n")
    found = imports_chunk(path, lines, taken)
    assert (None if found is None else (found.first_line, found.last_line)) == place
    if found is not None:
        assert (found.symbol, found.text) == (IMPORTS, "\n".join(lines[found.first_line - 1 : found.last_line]))
