"""What a search finds, in which order, and what it says of why."""

import math
import tomllib
from pathlib import Path

import pytest

from agent_workbench.adapters.retrieval.commit_index import CommitIndex
from agent_workbench.adapters.retrieval.index.chunker import IndexedChunk
from agent_workbench.adapters.retrieval.index.file_kinds import kind_of
from agent_workbench.adapters.retrieval.index.segments import SourceFile
from agent_workbench.adapters.retrieval.index.view import IndexView
from agent_workbench.adapters.retrieval.scoring import FoundChunk, search, weights
from agent_workbench.adapters.retrieval.search_features import Feature
from agent_workbench.core.ids import CommitId
from agent_workbench.core.repo.retrieval import CodeQuery, PastCommit, SignalKind
from agent_workbench.ranking.tokens import count_stems
from tests.adapters.retrieval.index.test_workspace_index import index_of

SOURCES = {
    "src/shop/cart.py": (("add_item", "def add_item(self, item): self.items.append(item)"), ("total", "sum of prices")),
    "src/shop/checkout.py": (("pay", "def pay(cart): charge(cart.total()) # the customer pays"),),
    "src/net/client.py": (("connect", "def connect(host): open a socket with a timeout"),),
    "src/net/retry.py": (("again", "def again(call): try the call once more after a pause"),),
    "tests/test_cart.py": (("test_add_item", "def test_add_item(): cart.add_item(item) item cart item"),),
    "docs/cart.md": (("Cart", "The cart holds items; add an item to the cart"),),
}


def commit(number: int, message: str, *paths: str) -> PastCommit:
    return PastCommit(CommitId(f"{number:040}"), message, paths)


OTHERS = [commit(10 + number, f"Other work {number}", f"lib/{number}.py") for number in range(9)]
PAST = CommitIndex([commit(1, "Do not hang when the peer is slow", "src/net/retry.py"), *OTHERS])


@pytest.fixture(scope="module")
def view() -> IndexView:
    """Return a view of a small shop."""
    files = []
    for path, chunks in SOURCES.items():
        cut = [
            IndexedChunk(10 * number + 1, 10 * number + 9, symbol, count_stems(text), count_stems(symbol), {})
            for number, (symbol, text) in enumerate(chunks)
        ]
        files.append(SourceFile(path, "0" * 40, kind_of(path, b""), cut))
    return index_of(files).view


def paths(found: list[FoundChunk]) -> list[str]:
    return list(dict.fromkeys(each.path for each in found))


def test_source_comes_before_tests_and_documents_unless_they_are_asked_for(view: IndexView) -> None:
    assert paths(search(view, CodeQuery("add an item to the cart"), None, None, 9))[0] == "src/shop/cart.py"
    assert (
        paths(search(view, CodeQuery("test that adds an item to the cart"), None, None, 9))[0] == "tests/test_cart.py"
    )


def test_a_name_finds_its_definition_and_a_trace_its_line(view: IndexView) -> None:
    found = search(view, CodeQuery("`add_item` is slow"), None, None, 3)
    assert (found[0].path, found[0].symbol) == ("src/shop/cart.py", "add_item")
    assert SignalKind.NAMED in {signal.kind for signal in found[0].signals}
    failing = 'File "/home/me/src/net/client.py", line 4, in connect\nTimeoutError: item'
    first = search(view, CodeQuery("add an item to the cart", failing), None, None, 5)[0]
    assert (first.path, first.why[0]) == ("src/net/client.py", "client.py:4")
    assert first.signals[0].kind == SignalKind.NAMED


def test_what_was_said_of_a_file_finds_it(view: IndexView) -> None:
    query = CodeQuery("It must not hang with a slow peer")
    assert "src/net/retry.py" not in paths(search(view, query, None, None, 1))
    found = search(view, query, PAST, None, 1)[0]
    assert found.path == "src/net/retry.py"
    history = next(signal for signal in found.signals if signal.kind == SignalKind.HISTORY)
    assert {"hang", "slow", "peer"} <= set(history.words)


def test_vectors_find_what_no_word_hits(view: IndexView) -> None:
    assert search(view, CodeQuery("zebra"), PAST, None, 3) == []
    found = search(view, CodeQuery("zebra"), None, {"src/net/client.py": 0.7, "gone.py": 0.9}, 3)
    assert [(each.path, each.signals[0].kind, each.signals[0].share) for each in found] == [
        ("src/net/client.py", SignalKind.VECTOR, 1.0)
    ]


def test_named_is_said_of_the_chunk_that_defines_the_name_and_of_no_other_in_its_file(view: IndexView) -> None:
    # `delay` has more of the words; `apply_async` is what was asked for.
    chunks = [("Task", "delay", "apply async apply_async apply"), ("Task", "apply_async", "send the message")]
    cut = [
        IndexedChunk(10 * number + 1, 10 * number + 9, f"{owner}.{name}", count_stems(text), count_stems(name), {})
        for number, (owner, name, text) in enumerate(chunks)
    ]
    other = SourceFile(
        "app/other.py", "0" * 40, kind_of("app/other.py", b""), [IndexedChunk(1, 9, "", {"send": 1}, {}, {})]
    )
    task = SourceFile("app/task.py", "0" * 40, kind_of("app/task.py", b""), cut)
    first, second = search(index_of([task, other]).view, CodeQuery("apply_async"), None, None, 9)[:2]
    assert (first.symbol, second.symbol) == ("Task.apply_async", "Task.delay")
    named = {found.symbol: [s.words for s in found.signals if s.kind == SignalKind.NAMED] for found in (first, second)}
    assert named == {"Task.apply_async": [("apply_async",)], "Task.delay": []}
    beside = next(signal for signal in second.signals if signal.kind == SignalKind.BESIDE)
    assert beside.words == ("apply_async",)


@pytest.mark.parametrize(
    "text", ["net: a host", "`add_item` of the cart", "shop src", "client.py:4 pay", "`pay` total"]
)
def test_each_reason_has_the_words_it_is_for(view: IndexView, text: str) -> None:
    found = search(view, CodeQuery(text), PAST, None, 20)
    assert found
    for each in found:
        bare = {signal.kind for signal in each.signals if not signal.words}
        # That much was done lately is for no word; the past may have voted by what stands deeper in a message.
        assert bare <= {SignalKind.RECENT, SignalKind.HISTORY, SignalKind.SIBLINGS}, each


@pytest.mark.parametrize("text", ["add an item to the cart", "pay", "net: connect a host", "src/net/retry.py:3"])
def test_shares_sum_to_1_and_the_largest_is_first(view: IndexView, text: str) -> None:
    for found in search(view, CodeQuery(text), PAST, {"src/net/client.py": 0.5}, 9):
        shares = [signal.share for signal in found.signals]
        assert math.isclose(sum(shares), 1.0)
        assert shares == sorted(shares, reverse=True)
        assert len({signal.kind for signal in found.signals}) == len(shares)


def test_nothing_is_found_for_nothing(view: IndexView) -> None:
    assert search(view, CodeQuery(""), PAST, {}, 5) == []
    assert search(IndexView(), CodeQuery("cart"), PAST, None, 5) == []
    assert search(view, CodeQuery("cart"), PAST, None, 0) == []


def test_weights_are_shipped_and_none_counts_against_a_file() -> None:
    with_vectors, without = weights(with_vectors=True), weights(with_vectors=False)
    assert set(with_vectors) == set(Feature) == {*without, Feature.VECTOR}
    assert all(weight >= 0 for weight in (*with_vectors.values(), *without.values()))
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "src/agent_workbench" in wheel["only-include"]
    assert all(each.startswith("/docs/") for each in wheel.get("exclude", ()))


def test_generated_code_is_found_only_if_it_is_named() -> None:
    def made(path: str, head: bytes) -> SourceFile:
        chunk = IndexedChunk(1, 9, "send", count_stems("send a message"), count_stems("send"), {})
        return SourceFile(path, "0" * 40, kind_of(path, head), [chunk])

    view = index_of([made("api/message_pb2.py", b""), made("api/send.py", b""), made("vendor/x/send.py", b"")]).view
    assert [each.path for each in search(view, CodeQuery("send a message"), None, None, 9)] == [
        *("api/send.py", "vendor/x/send.py")
    ]
    named = search(view, CodeQuery("send a message as api/message_pb2.py does"), None, None, 9)
    assert named[0].path == "api/message_pb2.py"


def test_weak_results_are_left_out_below_a_floor_and_files_come_first(view: IndexView) -> None:
    words = "add_item to the cart of the peer"
    all_of_them = [each.path for each in search(view, CodeQuery(words), PAST, None, 20)]
    best = [each.path for each in search(view, CodeQuery(words, floor=0.9), PAST, None, 20)]
    assert set(best) == {"src/shop/cart.py"}
    assert len(set(all_of_them)) > 1
    named = CodeQuery(words, files=("src/net/retry.py",), floor=0.9)
    assert search(view, named, PAST, None, 20)[0].path == "src/net/retry.py"
