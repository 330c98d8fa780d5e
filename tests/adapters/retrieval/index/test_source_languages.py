"""Every language with a grammar is cut at its definitions."""

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.adapters.retrieval.index import file_parser
from agent_workbench.adapters.retrieval.index.chunk_cache import ChunkCache
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk, Outline, chunk_text
from agent_workbench.adapters.retrieval.index.file_parser import FileParser, OutlineParser
from agent_workbench.adapters.retrieval.index.source_languages import find_language, language_of, parsed_languages
from tests.adapters.retrieval.snippets import SNIPPETS


def chunks_of(name: str, text: str, max_tokens: int = 400) -> tuple[IndexedChunk, ...]:
    outline = OutlineParser().outline(text.encode(), language_of(name))
    assert outline is not None, name
    return chunk_text(text, outline, max_tokens)


def test_there_is_a_snippet_of_every_language() -> None:
    assert {language_of(name) for name in SNIPPETS} == set(parsed_languages())


@pytest.mark.parametrize("name", SNIPPETS)
def test_definitions_are_chunks_with_their_names(name: str) -> None:
    text, symbols = SNIPPETS[name]
    chunks = chunks_of(name, text)
    assert symbols <= {chunk.symbol for chunk in chunks}
    lines = text.split("\n")
    assert all(1 <= chunk.first_line <= chunk.last_line <= len(lines) for chunk in chunks)
    assert all(before.last_line < after.first_line for before, after in pairwise(chunks))
    shown = {line for chunk in chunks for line in range(chunk.first_line, chunk.last_line + 1)}
    left_out = [line for number, line in enumerate(lines, 1) if number not in shown]
    assert not any(character.isalnum() for line in left_out for character in line)


def test_what_another_version_of_the_grammar_does_not_know_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    python = find_language("python")
    assert python is not None
    newer = replace(python, definitions=("(no_node_of_today)", *python.definitions))
    monkeypatch.setattr(file_parser, "find_language", lambda _: newer)
    outline = OutlineParser().outline(b"def total():\n    pass\n", "python")
    assert outline is not None
    assert [each.name for each in outline.definitions] == ["total"]


@pytest.mark.parametrize("name", SNIPPETS)
def test_every_pattern_is_known_to_the_grammar_at_hand(name: str) -> None:
    import tree_sitter

    language = find_language(language_of(name))
    assert language is not None
    grammar = tree_sitter.Language(getattr(pytest.importorskip(language.module), language.entry)())
    for pattern in (*language.definitions, *language.comments):
        tree_sitter.Query(grammar, f"{pattern} @it")
    unknown = {kind for kind in language.wrappers | language.leaders if not grammar.id_for_node_kind(kind, True)}
    assert unknown == set()


@pytest.mark.parametrize(
    "name", ["stack.py", "server.go", "queue.rs", "Account.java", "Main.kt", "tree.cpp", "user.rb"]
)
def test_methods_of_what_is_too_large_are_chunks_of_their_own(name: str) -> None:
    text, _ = SNIPPETS[name]
    method = {
        "stack.py": "Stack.top",
        "server.go": "Server.Listen",
        "queue.rs": "Queue.push",
        "Account.java": "Account.balance",
        "Main.kt": "Engine.start",
        "tree.cpp": "Tree.depth",
        "user.rb": "Billing.Invoice.total",
    }[name]
    assert method in {chunk.symbol for chunk in chunks_of(name, text, 6)}


def test_comments_decorators_and_attributes_belong_to_what_they_stand_before() -> None:
    text = "x = 1  # about x\n# about f\n@cache\ndef f():\n    '''Says more.'''\n    return 1\n"
    function = next(chunk for chunk in chunks_of("a.py", text) if chunk.symbol == "f")
    assert (function.first_line, function.last_line) == (2, 6)
    assert {"about", "say", "more"} <= set(function.comments)
    rust = next(chunk for chunk in chunks_of("a.rs", SNIPPETS["queue.rs"][0]) if chunk.symbol == "Queue")
    assert rust.first_line == 3
    assert "wait" in rust.comments


def test_names_inside_are_names_of_the_chunk() -> None:
    stack = next(chunk for chunk in chunks_of("stack.py", SNIPPETS["stack.py"][0]) if chunk.symbol == "Stack")
    assert {"stack", "top"} <= set(stack.names)


@pytest.mark.parametrize("name", [*SNIPPETS, "nothing.toml", "Makefile"])
def test_broken_source_is_cut_all_the_same(name: str) -> None:
    text = "}{ ]( def class fn func \x01 <<<<<<< ours\n" * 30 + "lone_word = 1\n"
    outline = OutlineParser().outline(text.encode(), language_of(name))
    assert (outline is None) == (find_language(language_of(name)) is None)
    if outline is not None:
        assert any("lone_word" in chunk.body for chunk in chunk_text(text, outline, 400))


def test_a_grammar_that_cannot_be_loaded_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tree_sitter_lua", None)
    assert OutlineParser().outline(b"function f() end", "lua") is None
    assert OutlineParser().outline(b"def f(): pass", "python") is not None


def test_what_takes_too_long_to_parse_is_cut_by_lines_and_that_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_workbench.adapters.retrieval.index.file_parser._PARSE_SECONDS", -1.0)
    parser = FileParser(ChunkCache(tmp_path), 400)
    slow = {"slow.html": b"<p>needle</p>\n" * 10_000}
    assert [parser.index(slow).parsed for _ in range(2)] == [1, 0]


def test_deep_nesting_ends() -> None:
    text = "".join("  " * depth + f"def f{depth}():\n" for depth in range(300)) + "  " * 300 + "pass\n"
    chunks = chunks_of("deep.py", text, 20)
    assert chunks[0].symbol == "f0"
    assert max(chunk.last_line for chunk in chunks) == 301


@pytest.mark.parametrize(("text", "language"), [("(", "python"), ("[", "javascript")])
def test_what_no_grammar_fits_is_cut_as_text_and_holds_nobody_up(text: str, language: str) -> None:
    """A query over so wide an error takes minutes, in which no other thread runs."""
    assert OutlineParser().outline(text.encode() * 400_000, language) == Outline()
