"""Kinds of files that a path tells: tests, documentation, and secrets; and definitions that are tests by their name."""

import re
from pathlib import PurePosixPath

_TEST_FOLDERS = frozenset(
    {"test", "tests", "testing", "testdata", "test_data", "__tests__", "__mocks__", "spec", "specs", "e2e", "fixtures"}
)
_TEST_NAME = re.compile(
    r"(tests?|test_.*|.*_tests?|conftest|.*[.-](test|spec|e2e|cy)(-d)?|.*(Test|Tests|Spec|TestCase))"
)
# Also the functions of Go.
_TEST_CLASS = re.compile(r"Test[A-Z_]")
_DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation", "examples", "locale", "locales"})
_DOCUMENT_SUFFIXES = frozenset({".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".svg", ".po", ".pot", ".csv"})
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts", ".pyi")
_DATA_SUFFIXES = frozenset({"", ".json", ".lock", ".toml", ".yaml", ".yml", ".cfg", ".ini"})
# Names of files with secrets, in any folder: what is found or judged goes to a model.
_SECRETS = re.compile(
    r"\.env|\.env\..*|.*\.(pem|key|p12|pfx|kdbx)|id_rsa.*|id_(dsa|ecdsa|ed25519)(\.pub)?"
    r"|\.(netrc|pypirc|npmrc|git-credentials|htpasswd)",
    re.DOTALL,
)
_EXAMPLES = (".env.example", ".env.sample", ".env.template")


def holds_secrets(path: str) -> bool:
    """Return True for a file with keys or passwords, judged by its name in any case."""
    name = path.rpartition("/")[2].lower()
    return _SECRETS.fullmatch(name) is not None and name not in _EXAMPLES


def is_test(path: str) -> bool:
    """Return True for a file with tests, or one that tests need."""
    name = PurePosixPath(path)
    return bool(_TEST_FOLDERS.intersection(name.parts[:-1]) or _TEST_NAME.fullmatch(name.stem))


def names_test(symbol: str) -> bool:
    """Return True for the dotted name of a definition that is a test or belongs to one, in whatever file it stands."""
    return any(_TEST_NAME.fullmatch(part) or _TEST_CLASS.match(part) for part in symbol.split("."))


def is_document(path: str) -> bool:
    """Return True for documentation."""
    name = PurePosixPath(path)
    return name.suffix.lower() in _DOCUMENT_SUFFIXES or bool(_DOCUMENT_FOLDERS.intersection(name.parts[:-1]))


def is_program(path: str) -> bool:
    """Return True for what is no test, no document, no data and no declaration of types: a failing check may run it."""
    is_data = PurePosixPath(path).suffix.lower() in _DATA_SUFFIXES
    return not (is_test(path) or is_document(path) or is_data or path.endswith(_DECLARATIONS))
