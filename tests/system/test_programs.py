"""Programs are found where the user's PATH says, but never in the current folder."""

import os
from pathlib import Path

import pytest

from agent_workbench.system.programs import clean_path, find_program


def test_a_path_is_cleaned(tmp_path: Path) -> None:
    inside, outside = tmp_path / "repo" / "bin", tmp_path / "tools"
    inside.mkdir(parents=True)
    outside.symlink_to(inside)
    path = f"/usr/bin:.::bin:{inside}:{outside}:/bin:/usr/bin"
    assert clean_path(path, str(tmp_path / "repo")) == "/usr/bin:/bin"
    assert clean_path("", str(tmp_path)) == "/usr/local/bin:/usr/bin:/bin"


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin", "../here/bin"])
def test_the_current_folder_is_no_place_for_programs(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    for place in (here / "sh", here / "only-here", here / "bin" / "sh", here / "bin" / "only-here"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o755)
    monkeypatch.chdir(here)
    path = os.pathsep.join([entry, "/usr/bin", "/bin"])
    assert find_program("sh", path) in {"/usr/bin/sh", "/bin/sh"}
    assert find_program("only-here", path) is None
    assert find_program("./bin/sh", path) == str(here / "bin" / "sh"), "a path is what it says"
