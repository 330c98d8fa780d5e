"""The locks hold exact versions with hashes, and name no place to fetch them from."""

import re
import tomllib
from collections.abc import Iterator, Set
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_workbench.core.extras import IMPORTS, Extra
from tests.architecture.source_tree import PACKAGE, ROOT, Import, Module, expect_none, modules

BASE, ALL = "requirements.lock", "requirements-all.lock"
LOCKS = [BASE, ALL, "requirements-dev.lock", "requirements-build.lock"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# What `uv tool install` brings without extras, our own package not counted. The number only goes down.
MOST_DISTRIBUTIONS = 50
LINUX: dict[str, str | Set[str]] = {
    "implementation_name": "cpython",
    "implementation_version": "3.11.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}
# Modules that import what an extra brings, and that nothing else imports than what asks for the extra first.
ASKED_BEFORE = {
    "subjects.mcp_client.streams_adapter": "runs in the process of the client",
    "subjects.mcp_client.process_adapter": "a process that `subjects.mcp_client.server_tools_adapter` starts",
    "subjects.mcp_client.elicitation_adapter": "runs in the process of the client",
    "subjects.mcp_client.sign_in_adapter": "runs in the process of the client",
    "adapters.retrieval.vector_worker": "a process that is started where there are vectors",
    "http_server": "the server of the package `mcp`",
}
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


@pytest.mark.parametrize("lock", [BASE, ALL, "requirements-build.lock"])
def test_all_locks_agree(lock: str) -> None:
    everything = _pins("requirements-dev.lock")
    assert {name: everything.get(name) for name in _pins(lock)} == _pins(lock)


def test_every_dependency_is_locked() -> None:
    extras, groups = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    wanted = {
        BASE: PROJECT["project"]["dependencies"],
        ALL: [each for extra in Extra for each in extras[extra]],
        "requirements-build.lock": groups["build"],
        "requirements-dev.lock": [each for each in groups["dev"] if isinstance(each, str)],
    }
    missing = [
        (lock, dependency)
        for lock, dependencies in wanted.items()
        for dependency in dependencies
        if canonicalize_name(Requirement(dependency).name) not in _pins(lock)
    ]
    assert missing == []


def test_the_base_stays_small() -> None:
    pins = [Requirement(parts[0]) for parts in _requirements(BASE)]
    installed = [each.name for each in pins if each.marker is None or each.marker.evaluate(LINUX)]
    assert len(installed) <= MOST_DISTRIBUTIONS
    page = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    assert f"the base: {len(installed) + 1} packages" in page, "with our own"


def test_the_extras_are_those_of_the_package() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {*extras} == {*Extra, "all"}
    assert extras["all"] == [f"agent-workbench[{','.join(sorted(Extra))}]"]


@pytest.mark.parametrize("extra", Extra)
def test_an_extra_is_known_by_what_nothing_else_brings(extra: Extra) -> None:
    for name in IMPORTS[extra]:
        distributions = _distributions(name)
        assert distributions & {*_pins(ALL)}
        assert not distributions & {*_pins(BASE)}


def test_what_only_an_extra_brings_is_imported_behind_the_question_for_it() -> None:
    base = {*_pins(BASE)}
    expect_none(
        f"{module.where}:{imported.line}: {imported.library} is not in the base, and no `__init__` requires its extra"
        for module, imported in _foreign_imports()
        if not _distributions(imported.library) & base and not _asks(module)
    )


def _foreign_imports() -> Iterator[tuple[Module, Import]]:
    for module in modules():
        for imported in module.imports():
            if imported.library != PACKAGE and _distributions(imported.library):
                yield module, imported


def _distributions(library: str) -> set[str]:
    return {canonicalize_name(each) for each in _DISTRIBUTIONS.get(library, ())}


def _asks(module: Module) -> bool:
    if module.name.removeprefix(f"{PACKAGE}.") in ASKED_BEFORE:
        return True
    folders = [each for each in module.path.parents if each.is_relative_to(ROOT / "src" / PACKAGE)]
    return any("\nrequire_extra(" in (each / "__init__.py").read_text() for each in folders)


_DISTRIBUTIONS = packages_distributions()
