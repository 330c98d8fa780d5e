"""Links of all pages, also of those that no navigation names, and the paths of the source tree that they name."""

import re
import tomllib
from pathlib import Path

from tests.architecture.source_tree import PACKAGE, ROOT, SOURCE

PAGES = sorted(ROOT.glob("docs/**/*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES]
PACKAGES = {path.name for path in (SOURCE / PACKAGE).iterdir() if path.is_dir()}
SITE = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)|(?:src|href)=\"(?P<file>[^\"#:]+)\"")
CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]+`", re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# Files of this repository are told from those of a reader's by their folder.
OURS = "bench|deploy|docgen|docs|examples|scripts|src|tests/(?:" + "|".join(
    sorted(path.name for path in (ROOT / "tests").iterdir() if path.is_dir())
)
PATH = re.compile(rf"`((?:{OURS}))/[\w./-]+)`|`([a-z_]+(?:/[a-z_]+)+\.py)[:`]")


def prose(text: str) -> str:
    """Return a text without code, which is shown and not followed."""
    return CODE.sub("", text)


def slugs(text: str) -> set[str]:
    """Return the anchors of a page's headings, as the site and forges make them."""
    without = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    plain = [
        re.sub(r"[^\w -]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", each).lower()) for each in HEADING.findall(without)
    ]
    return {each.strip().replace(" ", "-") for each in plain}


def broken_links(page: Path, within: Path | None = None) -> list[str]:
    """Return the links of a page that lead nowhere, or out of the folder that is published with it."""
    broken = []
    for match in LINK.finditer(prose(page.read_text("utf-8"))):
        path, anchor = match["path"] or match["file"] or "", match["anchor"]
        target = page.parent / path if path else page
        if not target.exists() or (within and not target.is_file()):
            broken.append(f"{match[0]}: no file")
        elif within and not target.resolve().is_relative_to(within):
            broken.append(f"{match[0]}: not in docs/, so neither on the site nor in the package")
        elif anchor and anchor not in slugs(target.read_text("utf-8")):
            broken.append(f"{match[0]}: no such heading")
    return broken


def test_links_lead_somewhere() -> None:
    docs = ROOT / "docs"
    broken = {str(page.relative_to(ROOT)): broken_links(page, docs if page in PAGES else None) for page in TEXTS}
    assert {page: links for page, links in broken.items() if links} == {}


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    good = "# One two\n[a](#one-two) `[b](gone)` [c](https://example.org/#x)\n"
    bad = '[a](#one) [b](gone.md) ![c](gone.svg) [d](page.md#two) [e](..) <img src="gone.png">\n'
    page.write_text(good)
    assert broken_links(page, tmp_path) == []
    page.write_text(good + bad)
    assert len(broken_links(page, tmp_path)) == 6


def test_every_path_of_the_source_tree_that_is_named_is_there() -> None:
    named = {
        (str(text.relative_to(ROOT)), ours or f"src/{PACKAGE}/{module}")
        for text in TEXTS
        if text.parent.name != "decisions" and text.name != "CHANGELOG.md"
        for ours, module in PATH.findall(text.read_text("utf-8"))
        if ours or module.split("/")[0] in PACKAGES
    }
    assert len(named) > 100
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []


def named_pages(entries: list[object]) -> list[str]:
    """Return the pages of a navigation, those of its sections too."""
    found = []
    for entry in entries:
        for each in entry.values() if isinstance(entry, dict) else [entry]:
            found += named_pages(each) if isinstance(each, list) else [str(each)]
    return found


def test_the_navigation_names_every_page_once_and_no_other() -> None:
    named = named_pages(SITE["nav"])
    there = [str(page.relative_to(ROOT / "docs")) for page in PAGES]
    assert sorted(named) == sorted(each for each in there if not each.startswith("decisions/0"))


def test_every_decision_is_in_their_list() -> None:
    listed = (ROOT / "docs/decisions/index.md").read_text("utf-8")
    assert [page.name for page in PAGES if page.name.startswith("0") and f"({page.name})" not in listed] == []
