import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_workbench.adapters.journal.blobs import LONGEST_TEXT_BYTES, Blobs
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events.codec import JsonObject
from agent_workbench.core.tools.strict_json import JsonValue
from tests.strategies import texts

TEXT = "x" * 5000
SHA = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("x" * LONGEST_TEXT_BYTES, False),
        ("x" * (LONGEST_TEXT_BYTES + 1), True),
        ("ä" * (LONGEST_TEXT_BYTES // 2), False),
        ("ä" * (LONGEST_TEXT_BYTES // 2) + "x", True),
        ("😀" * (LONGEST_TEXT_BYTES // 4), False),
        ("😀" * (LONGEST_TEXT_BYTES // 4) + "x", True),
    ],
)
def test_texts_over_4_kb_move_out(text: str, moves: bool, tmp_path: Path) -> None:
    body = Blobs(tmp_path).replace_long_texts({"output": text})
    data = text.encode()
    assert body == {"output": {"blob": hashlib.sha256(data).hexdigest(), "bytes": len(data)} if moves else text}
    assert Blobs(tmp_path).restore_long_texts(body) == {"output": text}
    assert (tmp_path / "blobs").exists() == moves


_json: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts() | texts().map(lambda text: (text + "~") * 4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(texts(), _json, max_size=4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.slow
def test_what_moves_out_comes_back(tmp_path: Path, body: JsonObject) -> None:
    assert Blobs(tmp_path).restore_long_texts(Blobs(tmp_path).replace_long_texts(body)) == body


def test_a_text_is_kept_once(tmp_path: Path) -> None:
    Blobs(tmp_path).replace_long_texts({"a": TEXT, "b": [TEXT, {"c": TEXT}]})
    assert [each.name for each in (tmp_path / "blobs").iterdir()] == [SHA]
    assert (tmp_path / "blobs" / SHA).read_text() == TEXT


def test_a_blob_that_was_cut_is_written_again(tmp_path: Path) -> None:
    Blobs(tmp_path).replace_long_texts({"a": TEXT})
    (tmp_path / "blobs" / SHA).write_text("x")
    body = Blobs(tmp_path).replace_long_texts({"a": TEXT})
    assert Blobs(tmp_path).restore_long_texts(body) == {"a": TEXT}


@pytest.mark.parametrize("content", ["", "x" * 4999, "y" * 5000, None])
def test_a_blob_that_is_not_as_written_is_named(content: str | None, tmp_path: Path) -> None:
    body = Blobs(tmp_path).replace_long_texts({"a": TEXT})
    (tmp_path / "blobs" / SHA).unlink()
    if content is not None:
        (tmp_path / "blobs" / SHA).write_text(content)
    with pytest.raises(JournalError, match=f"blob {SHA} {'is missing' if content is None else 'was changed'}"):
        Blobs(tmp_path).restore_long_texts(body)


@pytest.mark.parametrize(
    "value",
    [
        {"blob": "../../secret", "bytes": 1},
        {"blob": SHA.upper(), "bytes": 5000},
        {"blob": SHA, "bytes": "5000"},
        {"blob": None, "bytes": 0},
    ],
)
def test_what_names_no_blob_is_refused(value: JsonObject, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="names no blob"):
        Blobs(tmp_path).restore_long_texts({"a": [value]})


def test_nothing_is_written_or_read_through_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    session = tmp_path / "session"
    session.mkdir()
    (session / "blobs").symlink_to(outside)
    with pytest.raises(JournalError, match="symbolic link"):
        Blobs(session).replace_long_texts({"a": TEXT})
    assert list(outside.iterdir()) == []
    (session / "blobs").unlink()
    (session / "blobs").mkdir()
    (outside / "victim").write_text(TEXT)
    (session / "blobs" / SHA).symlink_to(outside / "victim")
    with pytest.raises(JournalError, match="symbolic link"):
        Blobs(session).replace_long_texts({"a": TEXT})
    with pytest.raises(JournalError, match="cannot be read"):
        Blobs(session).restore_long_texts({"a": {"blob": SHA, "bytes": 5000}})
