"""A stored index comes back as it was, or is refused: cut short, changed, foreign or lying."""

import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.index import packed_arrays as packing
from agent_workbench.adapters.retrieval.index.packed_arrays import DamagedIndex
from agent_workbench.adapters.retrieval.index.segments import Field, Segment
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.core.errors import StorageError
from tests.adapters.retrieval.index.test_workspace_index import assert_equals, file, index_of

FILES = [file(f"src/f{n}.py", f"b{n}", "read file", f"write name{n}", symbol=f"C.f{n}") for n in range(9)]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "one.idx"
    index_of(FILES).save(path, b"stamps")
    return path


def test_what_was_saved_comes_back_and_goes_on(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, extra = WorkspaceIndex.load(saved)
    assert extra == b"stamps"
    assert_equals(index.view, FILES)
    monkeypatch.setattr("agent_workbench.adapters.retrieval.index.workspace_index._SMALL", 0)
    changed = file("src/f3.py", "new", "worker token")
    index.add(Segment.build([changed]))
    index.remove("src/f0.py")
    now = [changed, *(each for each in FILES if each.path not in {"src/f0.py", "src/f3.py"})]
    assert_equals(index.view, now)
    index.save(saved)
    again, extra = WorkspaceIndex.load(saved)
    assert extra == b""
    assert_equals(again.view, now)
    again.compact()
    assert_equals(again.view, now)
    assert_equals(index.view, now)


def test_an_empty_index_comes_back(tmp_path: Path) -> None:
    for index in (WorkspaceIndex(), index_of([])):
        index.save(tmp_path / "empty")
        assert list(WorkspaceIndex.load(tmp_path / "empty")[0].view.paths()) == []


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # In a process of its own: what waits for a writer would wait for ever, and the tests with it.
    code = "import sys, pathlib; from agent_workbench.adapters.retrieval.index.workspace_index import load_snapshot"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; load_snapshot(pathlib.Path(sys.argv[1]))", str(tmp_path / "pipe")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "it is no regular file" in done.stderr


def test_a_reader_of_a_replaced_file_keeps_what_it_mapped(saved: Path) -> None:
    reader, _ = WorkspaceIndex.load(saved)
    index_of(FILES[:2]).save(saved)
    assert_equals(reader.view, FILES)
    saved.unlink()
    assert_equals(reader.view, FILES)


@pytest.mark.parametrize("where", [0.0, 0.001, 0.01, 0.2, 0.5, 0.9, 0.9999])
def test_a_changed_bit_is_seen(saved: Path, where: float) -> None:
    data = bytearray(saved.read_bytes())
    data[int(len(data) * where)] ^= 4
    saved.write_bytes(data)
    with pytest.raises(DamagedIndex, match="cannot be used"):
        WorkspaceIndex.load(saved)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_refused(saved: Path, share: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DamagedIndex):
        WorkspaceIndex.load(saved)


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[[",
        pytest.param(b"[" * 100_000, id="deep"),
        b'[["extra","<i4",4000000000000]]',
        b'[["extra","<i4",-1]]',
        b'[["extra","|O",1]]',
        b'[["extra","|u1",1,2]]',
        b'[["extra","<i4",0]]',
        b'[["extra","|u1",0],["0/alive","|b1",0]]',
        b'[["extra","|u1",0],["0/alive","|b1",0],["0/kinds","|i1",0],["0/first_pieces","<i4",0]]',
        b"\xff",
    ],
)
def test_a_lying_header_is_refused_without_much_memory(tmp_path: Path, header: bytes) -> None:
    rest = len(header).to_bytes(4, "little") + header + bytes(16)
    path = tmp_path / "lie"
    path.write_bytes(packing._MAGIC + zlib.crc32(rest).to_bytes(4, "little") + rest)
    with pytest.raises(DamagedIndex):
        WorkspaceIndex.load(path)


@pytest.mark.parametrize("size", [0, 3, 100, 100_000])
def test_a_foreign_file_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(random.Random(size).randbytes(size))
    with pytest.raises(DamagedIndex):
        WorkspaceIndex.load(path)
    with pytest.raises(DamagedIndex):
        Segment.from_bytes(path.read_bytes())
    for missing in (tmp_path, tmp_path / "absent", tmp_path / "nul\0"):
        with pytest.raises(DamagedIndex):
            WorkspaceIndex.load(missing)


def test_parts_that_do_not_fit_one_another_are_refused() -> None:
    arrays = Segment.build(FILES).arrays()
    for name in arrays:
        for other in ({**arrays, name: arrays[name][:-1]}, {each: arrays[each] for each in arrays if each != name}):
            if name != "words" or name not in other:  # its length is not stored apart
                with pytest.raises(DamagedIndex):
                    Segment.from_arrays(other)


def test_what_is_too_large_is_not_kept_and_what_was_abandoned_goes(saved: Path) -> None:
    before = saved.read_bytes()
    assert index_of(FILES).save(saved, max_bytes=100) == 0
    assert saved.read_bytes() == before
    old, young = (saved.with_name(f"one.idx.{name}.tmp") for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    assert index_of(FILES).save(saved, b"stamps") == len(before)
    assert sorted(path.name for path in saved.parent.iterdir()) == ["one.idx", young.name]


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="could not be saved"):
        index_of(FILES).save(tmp_path / "file" / "index")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="could not be saved"):
        index_of(FILES).save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


_SAVE_OFTEN = """
import sys
from pathlib import Path
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk
from agent_workbench.adapters.retrieval.index.segments import Segment, SourceFile

path, mine = Path(sys.argv[1]), sys.argv[2]
chunks = [IndexedChunk(n + 1, n + 1, "", {f"word{mine}": 1, f"text{n}": 2}, {}, {}) for n in range(50)]
index = WorkspaceIndex()
index.add(Segment.build([SourceFile(f"p{mine}.py", "b", FileKind.SOURCE, chunks)]))
for _ in range(20):
    index.save(path, mine.encode())
"""


def test_of_two_processes_that_save_at_once_one_wins_whole(tmp_path: Path) -> None:
    path = tmp_path / "shared.idx"
    command = [sys.executable, "-c", _SAVE_OFTEN, str(path)]
    writers = [subprocess.Popen([*command, f"{mine}"]) for mine in range(2)]
    seen = set[bytes]()
    while any(writer.poll() is None for writer in writers) or not seen:
        if path.exists():
            index, extra = WorkspaceIndex.load(path)
            assert list(index.view.paths()) == [f"p{extra.decode()}.py"]
            assert index.view.field(Field.BODY).coverage([f"word{extra.decode()}"]).sum() == 50
            seen.add(extra)
        assert all(writer.poll() in {None, 0} for writer in writers)
    assert [each.name for each in tmp_path.iterdir()] == ["shared.idx"]
