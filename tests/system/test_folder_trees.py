"""Folders go whole, however deep they are and whatever their permissions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.system.folder_trees import remove_tree

DEEP = "import os\nfor _ in range(3000):\n os.mkdir('0'); open('1', 'w').close(); os.chdir('0')"


@pytest.mark.slow
def test_a_folder_goes_at_any_depth(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", DEEP], cwd=folder, check=True)
    (folder / "2/a/b").mkdir(parents=True)
    remove_tree(str(folder))
    assert list(tmp_path.iterdir()) == []


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/x").touch()
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    (folder / "in/link").symlink_to(tmp_path / "kept")
    os.mkfifo(folder / "in/pipe")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(str(folder))
    remove_tree(str(tmp_path / "link"))
    remove_tree(str(tmp_path / "none"))
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "kept", tmp_path / "kept/x"]


def test_folders_without_permissions_go(tmp_path: Path) -> None:
    (tmp_path / "folder/a/b").mkdir(parents=True)
    (tmp_path / "folder/a/b/x").touch()
    for name in ("a/b", "a", ""):
        (tmp_path / "folder" / name).chmod(0)
    remove_tree(str(tmp_path / "folder"))
    assert not (tmp_path / "folder").exists()


def test_what_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        remove_tree(str(tmp_path / "file/below"))
