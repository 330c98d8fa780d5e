import numpy as np
import pytest

from agent_workbench.adapters.retrieval.vectors.lsa import Projection, train
from agent_workbench.adapters.retrieval.vectors.vector_table import VectorTable
from tests.adapters.retrieval.vectors.corpora import corpus, topics

DIMENSIONS = 6


def learnt() -> Projection:
    projection = train(corpus(topics()), DIMENSIONS)
    assert projection is not None
    return projection


def test_a_word_finds_files_that_lack_it_but_speak_of_the_same() -> None:
    files = topics()
    projection = learnt()
    held = VectorTable(corpus(files).blobs, projection.file_vectors(corpus(files)))
    vector = projection.query({"invoice": 1})
    assert vector is not None
    found = held.of_files(corpus(files).paths, corpus(files).blobs).nearest(vector, 14)
    assert [path for path in found if not path.startswith("money/")] == []
    assert any("invoice" not in files[path] for path in found)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_same_files_teach_the_same() -> None:
    one, other = learnt(), learnt()
    assert one.words == other.words
    assert np.array_equal(one.directions, other.directions)


def test_directions_are_those_of_an_exact_decomposition() -> None:
    given = corpus(topics())
    projection = learnt()
    dense = np.zeros((len(given.paths), len(projection.words)))
    for word, first, last in zip(given.words, given.starts, given.starts[1:], strict=False):
        if word in projection.numbers:
            number = projection.numbers[word]
            dense[given.rows[first:last], number] = (1 + np.log(given.counts[first:last])) * projection.weights[number]
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    exact = np.linalg.svd(dense, full_matrices=False)[2][:2]
    # The two topics stand out; their plane is found, however it is turned.
    assert np.allclose(np.linalg.svd(exact @ projection.directions[:, :2])[1], 1, atol=1e-2)


def test_a_file_that_is_folded_in_has_the_vector_that_it_has_among_all() -> None:
    given = corpus(topics())
    projection = learnt()
    among_all = projection.file_vectors(given)
    alone = projection.file_vectors(given.of_files([5, 3]))
    assert np.allclose(alone, among_all[[5, 3]], atol=1e-5)
    assert np.allclose(np.linalg.norm(among_all, axis=1), 1, atol=1e-5)


def test_what_no_word_is_known_of_has_no_direction() -> None:
    projection = learnt()
    assert projection.query({"quark": 3}) is None
    assert not projection.file_vectors(corpus({"a": ["quark"], "b": []})).any()


def test_too_few_files_teach_nothing() -> None:
    assert train(corpus(topics(4))) is None


def test_vectors_that_do_not_fit_push_out_those_of_contents_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.vectors.vector_table.MOST_BYTES", 4 * 2 * 4)
    held = VectorTable(["a", "b", "c"], np.eye(3, 2, dtype=np.float32))
    held.add(["d", "e"], np.ones((2, 2), dtype=np.float32), ["c", "d", "e"])
    assert held.missing(["a", "b", "c", "d", "e"]) == [0, 1]
    found = held.of_files(["file c", "file d"], ["c", "d"])
    assert np.array_equal(found.matrix[found.rows], [[0, 0], [1, 1]])
