"""The index of a workspace: what was taken in is there, by number and by word, however it was merged meanwhile."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from weakref import ref

import pytest
from rank_bm25 import BM25Okapi

from agent_workbench.adapters.retrieval.index import workspace_index as module
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk
from agent_workbench.adapters.retrieval.index.file_kinds import FileKind, is_bulk, is_bulk_content, kind_of
from agent_workbench.adapters.retrieval.index.segments import Field, Segment, SourceFile, merge
from agent_workbench.adapters.retrieval.index.view import ChunkExtent, IndexView
from agent_workbench.adapters.retrieval.index.workspace_index import WorkspaceIndex
from agent_workbench.adapters.retrieval.search_features import layout_of
from agent_workbench.ranking.tokens import count_stems

WORDS = ["read", "write", "file", "queue", "worker", "retry", "token", "self", "parse", "header", "shelf", "book"]


def chunk(number: int, words: Iterable[str], symbol: str = "") -> IndexedChunk:
    body = Counter(words)
    return IndexedChunk(
        number * 10 + 1, number * 10 + 9, symbol, body, count_stems(symbol), {"note": 1} if body else {}
    )


def file(path: str, blob: str, *texts: str, symbol: str = "") -> SourceFile:
    chunks = tuple(chunk(number, text.split(), symbol) for number, text in enumerate(texts))
    return SourceFile(path, blob, kind_of(path, b""), chunks)


def index_of(*segments: Sequence[SourceFile]) -> WorkspaceIndex:
    index = WorkspaceIndex()
    for files in segments:
        index.add(Segment.build(files))
    return index


def assert_equals(view: IndexView, files: Iterable[SourceFile]) -> None:
    """Assert that the view holds exactly these files, with the scores of the library over all their texts."""
    wanted = {each.path: each for each in files}
    assert sorted(view.paths()) == sorted(wanted)
    assert dict(zip(view.paths(), view.blobs(), strict=True)) == {each.path: each.blob for each in wanted.values()}
    assert (view.files, view.chunks) == (len(wanted), sum(len(each.chunks) for each in wanted.values()))
    rows, texts = [], []
    for path, each in wanted.items():
        number = view.number_of(path)
        assert number is not None
        assert (view.path_of(number), view.blob_of(path), view.kinds[number]) == (path, each.blob, each.kind)
        assert view.file_of[list(view.chunks_of(number))].tolist() == [number] * len(each.chunks)
        for row, one in zip(view.chunks_of(number), each.chunks, strict=True):
            assert view.extent(row) == ChunkExtent(one.first_line, one.last_line, one.symbol)
            rows.append(row)
            texts.append(list(Counter(one.body).elements()))
    rare = {word for word in WORDS if sum(word in text for text in texts) <= len(texts) / 2}
    for some in (WORDS[:1], WORDS[3:9], [*WORDS, "name3"]):
        # A word of most documents hangs on a mean, which lags until all is merged.
        words = [word for word in some if word in rare or len(view.segments) == 1]
        scores = view.field(Field.BODY).scores(words)
        assert scores[rows].tolist() == pytest.approx(BM25Okapi(texts).get_scores(words).tolist(), abs=1e-9)
        assert scores.sum() == pytest.approx(scores[rows].sum())


def word_counts(view: IndexView) -> dict[tuple[str, str], int]:
    """Return by path and word how often the word is in the file."""
    counts = {}
    for segment, alive in zip(view.segments, view.alive, strict=True):
        postings = segment.fields[Field.WHOLE_FILE]
        for number, word in enumerate(segment.vocabulary):
            some = slice(postings.starts[number], postings.starts[number + 1])
            for row, count in zip(postings.rows[some].tolist(), postings.counts[some].tolist(), strict=True):
                if alive[row]:
                    counts[segment.files.paths[row], word] = count
    return counts


def test_files_are_found_by_path_number_word_and_name() -> None:
    first = file("src/shelf.py", "b1", "read book", "write book shelf", symbol="Shelf.put_On")
    second = file("tests/test_shelf.py", "b2", "read read file", symbol="f, ns::put_on")
    index = index_of([first], [second, file("empty.py", "b3")])
    view = index.view
    assert_equals(view, [first, second, file("empty.py", "b3")])
    assert view.number_of("absent.py") is None
    assert index.blob_of("absent.py") == ""
    assert [view.extent(row).symbol for row in view.definers("PUT_on")] == ["Shelf.put_On"] * 2 + ["f, ns::put_on"]
    assert view.definers("put") == view.definers("Shelf.put_On") == []
    whole = view.field(Field.WHOLE_FILE).coverage(["book", "shelf", "read"])
    assert whole[view.number_of("src/shelf.py")] == 3
    assert view.field(Field.PATH).coverage(["shelf"]).sum() == 2
    assert word_counts(view) == {
        **{("src/shelf.py", word): times for word, times in {"read": 1, "write": 1, "book": 2, "shelf": 1}.items()},
        **{("tests/test_shelf.py", word): times for word, times in {"read": 2, "file": 1}.items()},
    }


@pytest.mark.parametrize("small", [0, 300, 10**6])
def test_whatever_comes_changes_and_goes_it_equals_an_index_made_anew(
    monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(module, "_SMALL", small)
    monkeypatch.setattr(module, "_WORTH_MERGING", 20)
    chooser = random.Random(small)
    index, files = WorkspaceIndex(), dict[str, SourceFile]()
    seen: list[tuple[IndexView, list[SourceFile]]] = []
    for step in range(60):
        some = [
            file(f"f{chooser.randrange(40)}.py", f"{step}-{n}", *(_text(chooser) for _ in range(chooser.randrange(4))))
            for n in range(chooser.choice([1, 1, 1, 6]))
        ]
        index.add(Segment.build(some))
        files |= {each.path: each for each in some}
        gone = chooser.sample(sorted(files), min(len(files), chooser.choice([0, 0, 1, 3])))
        index.remove(*gone, "absent.py")
        files = {path: each for path, each in files.items() if path not in gone}
        assert len(index.view.segments) <= 8
        if step % 10 == 9:
            seen.append((index.view, list(files.values())))
    index.compact()
    for view, wanted in [*seen, (index.view, list(files.values()))]:  # what was seen earlier is still as it was
        assert_equals(view, list(wanted))
    assert len(index.view.segments) == 1
    anew = index_of([files[path] for path in index.view.paths()]).view
    anew_bytes, merged_bytes = (view.segments[0].to_bytes() for view in (anew, index.view))
    assert anew_bytes == merged_bytes


def test_segments_may_be_merged_elsewhere() -> None:
    index, files = WorkspaceIndex(), [file(f"f{n}.py", "b", f"read name{n}", f"write name{n}") for n in range(20)]
    for each in [file("f3.py", "former", "worker"), *files[1:]]:
        index.add(Segment.build([each]), is_merged=False)
    assert len(index.view.segments) == 20
    place = index.merge_position()
    assert place is not None
    sent = [Segment.from_bytes(segment.to_bytes()) for segment in index.view.segments[place:]]
    before = index.view
    index.replace_from(place, merge(sent, index.view.alive[place:]))
    assert (len(before.segments), len(index.view.segments), index.merge_position()) == (20, 1, None)
    assert_equals(index.view, files[1:])
    assert_equals(before, files[1:])


def _text(chooser: random.Random) -> str:
    return " ".join([*chooser.choices(WORDS, k=chooser.randrange(1, 9)), f"name{chooser.randrange(500)}"])


def test_a_file_with_many_words_among_small_ones_keeps_its_counts() -> None:
    large = file("large.py", "b", " ".join(["again"] * 70_000), " ".join(["again"] * 300))
    index = index_of([large], [file("small.py", "c", "again")])
    scores = index.view.field(Field.WHOLE_FILE).scores(["again"])
    assert scores[0] != 0
    assert word_counts(index.view) == {("large.py", "again"): 70_300, ("small.py", "again"): 1}


def test_paths_and_symbols_may_hold_anything(tmp_path: Path) -> None:
    strange = [file(path, "b", "read", symbol="größe.中") for path in ("a b\nc.py", "\udcff.py", "é/中.py", ".py")]
    index = index_of(strange)
    index.save(tmp_path / "index")
    loaded, _ = WorkspaceIndex.load(tmp_path / "index")
    for view in (index.view, loaded.view):
        assert_equals(view, strange)
        assert len(view.definers("中")) == 4


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("src/app.py", b"import os\n", FileKind.SOURCE),
        ("src/contest.py", b"", FileKind.SOURCE),
        ("src/generator.py", b'"""Code generated by users is checked here."""\n', FileKind.SOURCE),
        ("src/codegen.go", b"// emits `Code generated by x. DO NOT EDIT.` at the top\n", FileKind.SOURCE),
        ("src/data.js", b"const a = 1;\n" * 100, FileKind.SOURCE),
        ("tests/app.py", b"", FileKind.TEST),
        ("src/app.test.ts", b"", FileKind.TEST),
        ("server_test.go", b"", FileKind.TEST),
        ("README.md", b"", FileKind.DOCUMENT),
        ("docs/conf.py", b"", FileKind.DOCUMENT),
        ("requirements.txt", b"", FileKind.DOCUMENT),
        ("api/v1.go", b"// Code generated by protoc-gen-go. DO NOT EDIT.\npackage v1\n", FileKind.GENERATED),
        ("schema.ts", b"/**\n * @generated SignedSource<<1>>\n */\n", FileKind.GENERATED),
        ("values.py", b"def values():\n    # These are not generated by hand\n", FileKind.SOURCE),
        ("lexer.c", b"/* A lexical scanner generated by flex */\n", FileKind.SOURCE),
        ("Form.cs", b"// <auto-generated>\n", FileKind.GENERATED),
        ("parser.py", b"# This file is automatically generated by the build. Do not edit.\n", FileKind.GENERATED),
        ("rules.py", b"# Generated from Rules.g4 by ANTLR 4.9\n", FileKind.GENERATED),
        ("thing_pb2.py", b"", FileKind.GENERATED),
        ("tests/__snapshots__/a.svg", b"", FileKind.GENERATED),
        ("vendor/lib/lib.go", b"", FileKind.VENDORED),
        # What a template wrote is edited.
        ("shop/migrations/0002_cart.py", b"# Generated by Django 4.2 on 2023-05-01 10:00\n", FileKind.VENDORED),
    ],
)
def test_kinds(path: str, head: bytes, kind: FileKind) -> None:
    assert kind_of(path, head) is kind


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("uv.lock", True),
        ("web/package-lock.json", True),
        ("go.sum", True),
        ("x/app.min.css", True),
        ("x/app.js.map", True),
        ("shop/locale/de/LC_MESSAGES/shop.po", True),
        ("web/src/i18n/fr.json", True),
        ("config/locales/de.yml", True),
        ("App/de.lproj/Main.strings", True),
        ("src/locale/formats.py", False),
        ("src/i18n.json", False),
        ("src/lock.py", False),
        ("linker.map", False),
        ("go.mod", False),
    ],
)
def test_lock_files_catalogs_and_minified_code_are_not_worth_an_index(path: str, held: bool) -> None:
    assert is_bulk(path) is held


def test_minified_code_and_pointers_are_known_by_their_content() -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    assert is_bulk_content("data/train.py", pointer)
    assert is_bulk_content("dist/app.js", b"!function(){" + b"a();" * 900)
    assert not is_bulk_content("docs/lfs.md", b"A pointer begins with\n" + pointer)
    assert not is_bulk_content("src/data.js", b"const a = 1;\n" * 100)
    assert not is_bulk_content("table.json", b"[" + b"1," * 900)


def test_what_searches_keep_of_a_view_does_not_keep_it_alive() -> None:
    index = index_of([file("src/a.py", "1", "read a file")])
    view = ref(index.view)
    layout_of(index.view)
    index.add(Segment.build([file("src/a.py", "2", "write a file")]))
    assert view() is None
