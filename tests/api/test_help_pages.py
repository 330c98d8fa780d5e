"""Pages that errors name: they are there, also in an installed package."""

import re
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from agent_workbench.api.help_pages import page_address
from agent_workbench.core import errors
from agent_workbench.core.errors import ConfigError, LockedError, TrustError, UsageError, WorkbenchError
from tests.architecture.source_tree import ROOT, SOURCE

CLASSES = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, WorkbenchError)]
NAMED = {
    page for path in SOURCE.rglob("*.py") for page in re.findall(r'\b(?:page|PAGE) ?= ?"(.+?\.md)"', path.read_text())
}


def opened(address: str) -> str:
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc) == ("file", "")
    return Path(unquote(parts.path)).read_text("utf-8")


def test_every_page_that_an_error_names_is_there() -> None:
    assert {each.page for each in CLASSES if each.page} <= NAMED
    assert [page for page in sorted(NAMED) if not (ROOT / "docs" / page).is_file()] == []


def test_the_address_opens_the_page_of_the_class_or_of_the_error() -> None:
    assert opened(page_address(TrustError("not trusted").page)).startswith("# Trust")
    assert opened(page_address(LockedError("locked", holder="1").page)).startswith("# A session")
    assert opened(page_address(ConfigError("x", page="how-to/database.md").page)).startswith("# Many machines")
    assert page_address(UsageError("no such flag").page) == ""


def test_an_installed_package_brings_its_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "a folder/agent_workbench/_data/docs/how-to/trust.md"
    page.parent.mkdir(parents=True)
    page.write_text("installed")
    monkeypatch.setattr(resources, "files", lambda name: tmp_path / "a folder" / name)
    assert opened(page_address(TrustError("not trusted").page)) == "installed"
    page.unlink()
    assert page_address(TrustError("not trusted").page) == ""
