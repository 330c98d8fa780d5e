"""The cache of pieces: what was kept comes back; whatever is wrong with its file, nothing fails."""

import sqlite3
import threading
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk

CHUNKS = (IndexedChunk(1, 3, "f", {"read": 2, "größe": 1}, {"f": 1}, {}), IndexedChunk(5, 5, "", {}, {}, {"note": 1}))


@pytest.fixture
def cache(tmp_path: Path) -> ChunkCache:
    return ChunkCache(tmp_path / "deep" / "cache")


def test_what_was_kept_comes_back(cache: ChunkCache) -> None:
    assert cache.find(["a"]) == {}
    cache.store({"a": CHUNKS, "b": ()})
    assert cache.find(["a", "b", "c", "a"]) == {"a": CHUNKS, "b": ()}
    assert ChunkCache(cache.path.parent).find(["a"]) == {"a": CHUNKS}


def test_many_keys_are_looked_up(cache: ChunkCache) -> None:
    cache.store({f"{number}": CHUNKS for number in range(1_200)})
    assert len(cache.find(f"{number}" for number in range(2_000))) == 1_200


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_corrupt_file_is_made_anew(cache: ChunkCache, content: bytes) -> None:
    cache.path.parent.mkdir(parents=True)
    cache.path.write_bytes(content)
    assert cache.find(["a"]) == {}
    cache.store({"a": CHUNKS})
    assert cache.find(["a"]) == {"a": CHUNKS}


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9])
def test_a_damaged_file_gives_what_is_whole_or_nothing(cache: ChunkCache, part: float) -> None:
    cache.store({f"{number}": CHUNKS for number in range(400)})
    data = bytearray(cache.path.read_bytes())
    start = int(len(data) * part)
    data[start : start + 3_000] = b"\x5a" * 3_000
    cache.path.write_bytes(bytes(data))
    found = cache.find(f"{number}" for number in range(400))
    assert all(chunks == CHUNKS for chunks in found.values())
    cache.store({"new": CHUNKS})
    assert cache.find(["new"]) == {"new": CHUNKS}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE somebody_elses (x)",
        "DROP TABLE pieces",
        "ALTER TABLE pieces RENAME COLUMN data TO other",
        "PRAGMA user_version = 99",
    ],
)
def test_a_file_of_somebody_else_is_made_anew(cache: ChunkCache, statement: str) -> None:
    cache.store({"a": CHUNKS})
    if "somebody" in statement:
        cache.path.unlink()
    with closing(sqlite3.connect(cache.path)) as foreign:
        foreign.execute(statement)
        foreign.commit()
    assert cache.find(["a"]) == {}
    cache.store({"b": CHUNKS})
    assert cache.find(["a", "b"]) == {"b": CHUNKS}


@pytest.mark.parametrize("data", [b"", b"x", "text", None, 7, b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_an_entry_that_is_damaged_is_not_known(cache: ChunkCache, data: object) -> None:
    cache.store({"a": CHUNKS, "b": CHUNKS})
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute("UPDATE pieces SET data = ? WHERE key = 'a'", ("" if data is None else data,))
        other.commit()
    assert cache.find(["a", "b"]) == {"b": CHUNKS}


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b" " * 100_000_000,
        b'[[1, 1, "f", {"a": 99999999999}, {}, {}]]',
        b'[[1, 1, "f", {"a": -1}, {}, {}]]',
        b'[[1, 9999999999, "f", {}, {}, {}]]',
    ],
    ids=["deep", "inflated", "many", "negative", "far"],
)
def test_an_entry_that_would_harm_is_not_known(cache: ChunkCache, text: bytes) -> None:
    cache.store({"a": CHUNKS, "b": CHUNKS})
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("UPDATE pieces SET data = ? WHERE key = 'a'", (zlib.compress(text, 1),))
        other.execute("UPDATE pieces SET used = 'never' WHERE key = 'b'")
        other.commit()
    tracemalloc.start()
    assert cache.find(["a", "b"]) == {"b": CHUNKS}
    assert tracemalloc.get_traced_memory()[1] < 80_000_000
    tracemalloc.stop()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = ChunkCache(folder)
        cache.store({"a": CHUNKS})
        cache.shrink()
        assert cache.find(["a"]) == {}
    in_the_way = ChunkCache(tmp_path)
    in_the_way.path.mkdir()
    in_the_way.store({"a": CHUNKS})
    assert in_the_way.find(["a"]) == {}
    assert in_the_way.path.is_dir()


def test_a_cache_that_somebody_is_writing_is_done_without(cache: ChunkCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.index.chunk_cache._BUSY_SECONDS", 0.05)
    cache.store({"a": CHUNKS})
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        cache.store({"b": CHUNKS})
        assert cache.find(["a"]) == {}
        other.rollback()
    assert cache.find(["a", "b"]) == {"a": CHUNKS}


def test_what_was_not_used_for_longest_goes_when_there_is_too_much(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path, max_bytes=20_000)
    many = tuple(IndexedChunk(n, n, f"symbol{n}", {f"word{n * 7919}": n}, {}, {}) for n in range(1, 200))
    for number in range(30):
        cache.store({f"{number}": many})
        with closing(sqlite3.connect(cache.path)) as other:
            other.execute("UPDATE pieces SET used = ? WHERE key = ?", (1_000_000 + number, f"{number}"))
            other.commit()
    cache.find(["3"])  # used today, so it stays
    cache.shrink()
    left = set(cache.find(f"{number}" for number in range(30)))
    assert {"3", "29"} <= left
    assert "0" not in left
    assert cache.path.stat().st_size < 40_000
    cache.shrink()
    assert set(cache.find(left)) == left


def test_what_is_forgotten_is_written_over_in_every_language(cache: ChunkCache) -> None:
    secret = (IndexedChunk(1, 1, "", {"swordfish": 1}, {}, {}),)
    cache.store({"ab:python:400": secret, "ab:text:100": secret, "abc:text:400": secret})
    assert cache.delete({"ab"})
    assert set(cache.find(["ab:python:400", "ab:text:100", "abc:text:400"])) == {"abc:text:400"}
    assert not cache.delete({"ab"})


def test_many_may_use_it_at_once(cache: ChunkCache) -> None:
    failures: list[BaseException] = []

    def use(mine: int) -> None:
        try:
            for number in range(10):
                ChunkCache(cache.path.parent).store({f"{mine}-{number}": CHUNKS})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(mine,)) for mine in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(cache.find(f"{mine}-{number}" for mine in range(6) for number in range(10))) == 60
