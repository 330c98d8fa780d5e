"""Which files are tests, and which are documents: they speak of the code without being it."""

import re
from pathlib import PurePosixPath

_TEST_FOLDERS = frozenset(
    {"test", "tests", "testing", "testdata", "test_data", "__tests__", "spec", "specs", "e2e", "fixtures"}
)
_TEST_NAME = re.compile(r"(test_.*|.*_tests?|conftest|.*\.(test|spec)|.*(Test|Tests|Spec))")
_DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation", "examples", "locale"})
_DOCUMENT_SUFFIXES = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ".lock", ".svg", ".po", ".csv", ".snap"})


def is_test(path: str) -> bool:
    """Return whether the file holds tests or what they need."""
    name = PurePosixPath(path)
    return bool(_TEST_FOLDERS.intersection(name.parts[:-1]) or _TEST_NAME.fullmatch(name.stem))


def is_document(path: str) -> bool:
    """Return whether the file is written for readers, or by a tool."""
    name = PurePosixPath(path)
    return name.suffix.lower() in _DOCUMENT_SUFFIXES or bool(_DOCUMENT_FOLDERS.intersection(name.parts[:-1]))
