"""Vectors in memory."""

import numpy as np
import pytest

from agent_workbench.adapters.retrieval import vector_table
from agent_workbench.adapters.retrieval.repo_vectors import CHARS_PER_TEXT, MAX_TEXTS, texts_of
from agent_workbench.adapters.retrieval.vector_table import VectorTable, unit_rows


def table(*rows: tuple[float, float]) -> VectorTable:
    return VectorTable([f"{number}" for number in range(len(rows))], unit_rows(np.array(rows, np.float32)))


def test_files_come_by_cosine_if_they_are_above_the_mean() -> None:
    vectors = table((1, 0), (1, 1), (0, 1), (-1, 0))
    files = vectors.of_files(["1.py", "2.py", "3.py", "4.py", "copy.py", "unknown.py"], ["0", "1", "2", "3", "0", "x"])
    found = files.nearest(np.array([1, 0], np.float32), 9)
    assert list(found) == ["1.py", "copy.py", "2.py"]
    assert found["1.py"] - found["2.py"] == pytest.approx(1 - 0.7071, abs=1e-3)
    assert list(files.nearest(np.array([1, 0], np.float32), 1)) == ["1.py"]
    assert list(files.nearest(np.array([-1, 0], np.float32), 9)) == ["4.py", "3.py"]


def test_what_all_files_have_in_common_with_a_query_ranks_none() -> None:
    files = table((10, 1), (10, 1.001), (10, 3)).of_files(["1.py", "2.py", "3.py"], ["0", "1", "2"])
    assert list(files.nearest(np.array([0.94, 0.34], np.float32), 9)) == ["3.py"]
    alone = table((1, 1)).of_files(["alone.py"], ["0"])
    assert list(alone.nearest(np.array([1, 0], np.float32), 9)) == ["alone.py"]
    assert VectorTable().of_files([], []).nearest(np.array([1, 0], np.float32), 9) == {}


def test_vectors_that_do_not_fit_push_out_those_of_contents_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "MAX_BYTES", 4 * 4 * 10)  # ten vectors of four numbers
    table = VectorTable()
    old, new = [f"old{number}" for number in range(8)], [f"new{number}" for number in range(12)]
    table.add(old, np.ones((8, 4), np.float32), old)
    living = [*old[:2], *new]
    assert table.fitting([*living, *living]) == list(range(10))
    assert table.missing(living) == list(range(2, 10))
    table.add(new[:9], np.ones((9, 4), np.float32), living)
    known, vectors = table.of_contents([*old, *new])
    assert known == [*old[:2], *new[:8]]
    assert vectors.shape == (10, 4)


def test_files_keep_their_vectors_while_others_come() -> None:
    vectors = table((1, 0))
    before = vectors.of_files(["1.py"], ["0"])
    for number in range(1, 100):
        vectors.add([f"{number}"], unit_rows(np.array([[0, 1]], np.float32)), [])
    assert before.nearest(np.array([1, 0], np.float32), 9) == {"1.py": 1.0}
    after = vectors.of_files([f"{number}.py" for number in range(100)], [f"{number}" for number in range(100)])
    assert list(after.nearest(np.array([1, 0], np.float32), 9)) == ["0.py"]


def test_an_empty_table_has_nothing() -> None:
    table = VectorTable()
    assert table.dimensions == 0
    assert table.of_files(["a.py"], ["a"]).paths == []
    assert table.of_contents(["a"])[0] == []


def test_a_row_of_zeros_stays_one() -> None:
    assert unit_rows(np.array([[0, 0], [3, 4]], np.float32)).tolist() == [[0, 0], pytest.approx([0.6, 0.8])]


def test_a_file_is_represented_by_its_first_texts() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    texts = texts_of(text.encode())
    assert len(texts) == MAX_TEXTS
    assert all(len(each) <= CHARS_PER_TEXT and each.endswith("\n") for each in texts)
    assert "".join(texts) == text[: sum(map(len, texts))]
    assert texts_of(b"") == texts_of(b" \n") == ["empty"]
    assert len(texts_of(b"x" * 1_000_000)) == MAX_TEXTS
