import pytest

from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.yaml_documents import (
    CollectionEnd,
    CollectionStart,
    DocumentError,
    Mark,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    compose,
    decode_document,
    is_nothing,
    is_text,
    mark_at,
    read_value,
)

START, END = Mark(0, 1, 1), Mark(9, 3, 2)


def scalar(text: str, *, plain: bool = True) -> YamlScalar:
    return YamlScalar(text, plain, START, END)


def test_events_make_nodes() -> None:
    table, listing = CollectionStart(True, False, START), CollectionStart(False, True, START)
    root = compose([table, scalar("a"), listing, scalar("b"), CollectionEnd(END), CollectionEnd(END)])
    assert isinstance(root, YamlMapping)
    assert root.get("a") == YamlSequence((scalar("b"),), True, START, END)
    assert root.get("b") is None
    assert compose([]) is None
    with pytest.raises(DocumentError, match="expected the end of the document, found more"):
        compose([scalar("a"), scalar("b")])
    with pytest.raises(DocumentError, match="expected a value, found the end"):
        compose([CollectionEnd(END)])


def test_nesting_is_bounded() -> None:
    opening = CollectionStart(False, True, START)
    assert compose([*[opening] * 20, *[CollectionEnd(END)] * 20]) is not None
    with pytest.raises(DocumentError, match="at most 20 levels of nesting"):
        compose([opening] * 21)


def test_places_are_counted_as_editors_do() -> None:
    assert mark_at("ab\ncd", 4) == Mark(4, 2, 2)
    assert mark_at("", 0) == Mark(0, 1, 1)
    with pytest.raises(DocumentError) as caught:
        decode_document("é\nx".encode() + b"\xff")
    assert caught.value.in_file("f") == "f:2:2: expected UTF-8, found byte 0xff"


@pytest.mark.parametrize(
    "text", ["1", "-1", "+1", "1.5", ".5", "1e3", "0x1F", "0o7", "0b1", "1_000", "-.INF", ".nan", "No", "ON"]
)
def test_what_some_reader_takes_for_something_else_is_no_text(text: str) -> None:
    assert not is_text(text)
    with pytest.raises(DocumentError, match=f"^k: expected text, found {text.replace('+', '.')}$"):
        read_value(scalar(text), str, "k")
    assert read_value(scalar(text, plain=False), str, "k") == text


@pytest.mark.parametrize("text", ["y", "n", "1.2.3", "12:30", "2026-01-01", "1/4", "e3", "0xZ", "nan", "inf", "_1"])
def test_what_every_reader_takes_for_text_needs_no_quotes(text: str) -> None:
    assert read_value(scalar(text), str, "k") == text


@pytest.mark.parametrize("text", ["", "~", "null", "Null"])
def test_nothing_is_nothing_without_quotes_alone(text: str) -> None:
    assert is_nothing(scalar(text))
    assert not is_nothing(scalar(text, plain=False))


def test_messages_are_bounded_and_printable() -> None:
    assert quoted("\x1b[31m") == r"'\x1b[31m'"
    assert len(quoted("x" * 1000)) < 70
    assert did_you_mean("modle", ["model", "python"]) == "; did you mean 'model'?"
    assert did_you_mean("x" * 1000, ["model"]) == ""
