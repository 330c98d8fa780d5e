"""The tutorial and the tested how-to guides: what they say is typed into a real shell, and shows what they show."""

from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.docs.newcomer import NIGHT, TUTORIAL, move_in, set_up
from tests.docs.pages import Keys, Scene, Shell, Shows, missing, scenes
from tests.docs.typist import Typist

MOST_BYTES = 300_000


@pytest.fixture
def home(tmp_path: Path, needs_sandbox: None) -> Path:
    return tmp_path / "home"


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
def test_the_tutorial_leads_to_a_merged_commit(home: Path) -> None:
    environment = move_in(home)
    with Typist(home, environment) as typist:
        typist.play([*scenes(TUTORIAL)])


@pytest.mark.slow
@pytest.mark.xdist_group("pty")
def test_a_night_ends_in_the_inbox(home: Path) -> None:
    environment = move_in(home)
    with Typist(set_up(home, environment), environment) as typist:
        typist.play([*scenes(NIGHT)])


def test_films_are_those_of_the_pages_and_small() -> None:
    films = {scene.film for page in (TUTORIAL, NIGHT) for scene in scenes(page) if scene.film}
    kept = sorted((ROOT / "docs/films").iterdir())
    assert {path.name for path in kept} == {f"{film}.{kind}" for film in films for kind in ("cast", "svg")}
    assert [path.name for path in kept if path.stat().st_size > MOST_BYTES] == []
    assert [path.name for path in kept if "/tmp/" in path.read_text("utf-8")] == []


def test_what_is_not_shown_is_missed() -> None:
    shown = Shows(("20260101T000000-abcdef  done in 3 s", "…", "2 tasks"))
    assert missing(shown, "20261127T101811-yn3f3e  done  in 12 s\n7 tasks\n") == []
    assert missing(shown, "20261127T101811-yn3f3e  failed in 12 s\n7 tasks\n") == [shown.lines[0]]


def test_the_parts_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- tested: shell film -->\n```sh\nls\n```\n\n```sh\nnot run\n```\n"
        "<!-- tested: keys -->\n| press | shows |\n| --- | --- |\n| | `one` |\n| `a` | `two` `three` |\n"
    )
    shell, keys = scenes(page)
    assert shell == Scene(Shell("ls\n"), "film")
    assert isinstance(keys.part, Keys)
    assert [(row.keys, row.words) for row in keys.part.rows] == [((), ("one",)), (("a",), ("two", "three"))]
