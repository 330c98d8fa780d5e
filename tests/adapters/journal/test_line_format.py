import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.adapters.journal.line_format import (
    JournalLine,
    claimed_hash,
    decode_line,
    encode_line,
    join_surrogates,
)
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events.codec import JsonObject
from tests.strategies import joined, texts

BODY: JsonObject = {"reason": "tschüß"}


def line() -> bytes:
    return encode_line(7, "2026-01-02T03:04:05.000006Z", "session_left", BODY, "a" * 64)[0].removesuffix(b"\n")


def rehashed(raw: bytes) -> bytes:
    """Return the line as somebody would forge it: with the hash its content has."""
    unhashed = raw[:-66] + b'"}'
    return unhashed[:-2] + hashlib.sha256(unhashed).hexdigest().encode() + b'"}'


def test_the_bytes_are_fixed() -> None:
    # Recorded sessions depend on every one of them.
    assert line() == (
        b'{"v":1,"seq":7,"time":"2026-01-02T03:04:05.000006Z","kind":"session_left",'
        b'"body":{"reason":"tsch\\u00fc\\u00df"},"prev":"' + b"a" * 64 + b'",'
        b'"hash":"2adc92b9aadb86949ad463e11778ba0c2cc2a9f40ede354651096703b0d98755"}'
    )


def test_the_hash_is_over_the_line_with_the_hash_left_empty() -> None:
    content = json.loads(line())
    hashed = json.dumps(content | {"hash": ""}, separators=(",", ":"))
    assert content["hash"] == hashlib.sha256(hashed.encode()).hexdigest()
    assert rehashed(line()) == line()


@given(st.integers(0, 2**53), texts(), texts(), st.dictionaries(texts(), texts()))
def test_what_goes_in_comes_out(seq: int, time: str, kind: str, body: dict[str, str]) -> None:
    raw, digest = encode_line(seq, time, kind, dict(body), "")
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert decode_line(raw[:-1]) == JournalLine(seq, time, kind, dict(body), "", digest)
    assert claimed_hash(raw[:-1]) == digest


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b'"v":1', b'"v":2', "schema version is 2"),
        (b'"v":1', b'"v":"1"', "schema version is '1'"),
        (b'{"v":1', b'{"x":0,"v":1', "keys are x, v"),
        (b'"v":1,"seq":7', b'"seq":7,"v":1', "keys are seq, v"),
        (b'"seq":7', b'"seq":"7"', "wrong type"),
        (b'"seq":7', b'"seq":7,"seq":7', "canonical"),
        (b'"seq":7', b'"seq": 7', "canonical"),
        (b'"seq":7', b'"seq":07', "not JSON"),
        (b'"reason":', b'"reason":NaN,"x":', "not JSON"),
        (b'"reason":', b'"reason":1e999,"x":', "not JSON"),
        (b'"reason":', b'"reason":' + b"9" * 5000 + b',"x":', "not JSON"),
        (b'"reason":', b'"reason":' + b"[" * 100_000 + b"]" * 100_000 + b',"x":', "not JSON"),
        (b"tsch\\u00fc\\u00df", "tschüß".encode(), "not JSON"),
        (b'"body":{', b'"body":[],"x":{', "keys are"),
    ],
)
def test_forged_lines_are_refused(before: bytes, after: bytes, said: str) -> None:
    assert line().count(before) == 1
    with pytest.raises(JournalError, match=re.escape(said)):
        decode_line(rehashed(line().replace(before, after)))


def test_a_changed_line_does_not_have_its_hash() -> None:
    with pytest.raises(JournalError, match="hash is"):
        decode_line(line().replace(b'"seq":7', b'"seq":8'))


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{}", b'"text"', b"\xff", b"\0" * 80, b'{"v":1}'])
def test_what_is_no_line_is_refused(raw: bytes) -> None:
    with pytest.raises(JournalError):
        decode_line(raw)
    assert claimed_hash(raw) is None


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\ud800\udfff")))
def test_surrogates_are_joined_as_json_joins_them(text: str) -> None:
    assert join_surrogates(text) == json.loads(json.dumps(text)) == joined(text)
