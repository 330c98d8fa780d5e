"""Only regular files are read, within bounds, and nothing is waited for."""

import errno
import os
import socket
from pathlib import Path

import pytest

from agent_workbench.system.folder_trees import NotRegularError, read_regular


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_bytes(b"12345")
    for name in ("pipe", "."):
        with pytest.raises(NotRegularError):
            read_regular(tmp_path / name, 5)
    for name in ("socket", "link"):
        with pytest.raises(OSError, match=name):
            read_regular(tmp_path / name, 5)
    assert read_regular(tmp_path / "link", 5, follow=True) == b"12345"


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "five").write_bytes(b"12345")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**41)
    assert read_regular(tmp_path / "five", 5) == b"12345"
    for name, most in (("five", 4), ("huge", 2**20)):
        with pytest.raises(OSError, match="more than") as refusal:
            read_regular(tmp_path / name, most)
        assert refusal.value.errno == errno.EFBIG
