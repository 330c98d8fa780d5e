"""The locks hold exact versions with hashes, and name no place to fetch them from."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

LOCKS = ["requirements.lock", "requirements-dev.lock"]
REQUIREMENT = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?P<marker> ; [^\\]+)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9._-]+")


def _requirements(lock: str) -> list[list[str]]:
    """Return each requirement as its parts: the pinned name, then its hashes."""
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "\0")
    return [[part.strip() for part in line.split("\0")] for line in joined.splitlines()]


def _pins(lock: str) -> dict[str, str]:
    found = [REQUIREMENT.fullmatch(parts[0]) for parts in _requirements(lock)]
    return {match["name"]: match["version"] for match in found if match}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_exact_and_hashed(lock: str) -> None:
    wrong = [
        parts
        for parts in _requirements(lock)
        if not REQUIREMENT.fullmatch(parts[0]) or not parts[1:] or not all(HASH.fullmatch(part) for part in parts[1:])
    ]
    assert wrong == []
    assert _pins(lock)


@pytest.mark.parametrize("lock", LOCKS)
def test_no_place_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert re.findall(r"\w+://\S+|--(?:extra-)?index-url.*|--find-links.*|(?<!\w)/\S+", text) == []


def test_both_locks_agree() -> None:
    everything = _pins("requirements-dev.lock")
    assert {name: everything.get(name) for name in _pins("requirements.lock")} == _pins("requirements.lock")


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads(Path(ROOT / "pyproject.toml").read_text())
    wanted = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-dev.lock": project["dependency-groups"]["dev"],
    }
    missing = [
        (lock, dependency)
        for lock, dependencies in wanted.items()
        for dependency in dependencies
        if (match := NAME.match(dependency)) and re.sub(r"[._-]+", "-", match[0]).lower() not in _pins(lock)
    ]
    assert missing == []
