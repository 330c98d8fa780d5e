"""What the receipt of a prompt says: each part's tokens, what was cached, new and read again, and what it took."""

import pytest
from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    Author,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    Event,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    PromptBuilt,
    PromptPart,
    Recorded,
)
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.receipt import ReceiptRow, ReceiptView, count_prompts, view_receipt
from agent_workbench.views.status import view_status
from tests.fakes import runs

CART = Chunk("shop/cart.py", 15, 17, "x" * 288, 7.4, "total")
TEST = Chunk("tests/test_cart.py", 12, 13, "y" * 82, 5.2)
FIRST = (PromptPart("rules", 200), PromptPart("task", 60), PromptPart("code", 100))
NEXT = (PromptPart("answer", 40), PromptPart("observation", 50))


def built(step: int, parts: tuple[PromptPart, ...], tokens: int) -> PromptBuilt:
    return PromptBuilt(step, Purpose.EXECUTOR, 2 + step, tokens, "0" * 64, parts, "http://a", seed=7)


def answered(step: int, prompt: int, cached: int, answer: int = 41, seconds: float = 0.0) -> ModelAnswered:
    figures = AnswerFigures(prompt, cached, answer, seconds, 1.0, 0.25)
    return ModelAnswered(step, "Thought: so\nAction: finish\n{}", figures, "http://a", "big.gguf")


def observed(*shown: Chunk) -> ActionFinished:
    return ActionFinished(ProposalId("P-1"), ActionResult.OK, "what came of it", shown=shown)


def state_after(*events: Event) -> SessionState:
    before = (*runs.opening(), *runs.started(), CodeRetrieved("q", (CART, TEST)))
    return fold_all(Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate((*before, *events)))


def receipt(state: SessionState, number: int = 0) -> ReceiptView:
    found = view_receipt(state, number)
    assert found is not None
    return found


def rows(view: ReceiptView, *, inside: bool = False) -> dict[str, ReceiptRow]:
    return {row.label: row for row in view.rows if row.inside is inside}


TWO = (
    built(1, FIRST, 360),
    answered(1, 380, 0, seconds=3.8),
    observed(),
    built(2, NEXT, 450),
    answered(2, 480, 420, seconds=0.6),
)


def test_a_first_prompt_is_all_new() -> None:
    view = receipt(state_after(*TWO[:2]))
    assert (view.number, view.count, view.step, view.tokens) == (1, 1, 1, 380)
    assert (view.cached, view.new, view.again) == (0, 380, 0)
    assert {label: row.new for label, row in rows(view).items()} == {
        "rules": 200,
        "task": 60,
        "code": 100,
        "template": 20,
    }
    assert (view.endpoint, view.model, view.seed, view.context_tokens) == ("http://a", "big.gguf", 7, 16_384)
    assert view.dollars == 0.25


def test_what_was_appended_is_new_and_the_rest_cached() -> None:
    found = rows(receipt(state_after(*TWO)))
    assert [row.read for label, row in found.items() if label != "template"] == ["cached"] * 4 + ["new"]
    assert (found["answer"].cached, found["observation"].new) == (40, 50)
    assert found["template"].tokens == 30
    assert found["observation"].prompt == 2


def test_the_seconds_go_to_what_was_read() -> None:
    view = receipt(state_after(*TWO))
    found = rows(view)
    assert sum(row.seconds for row in found.values()) == pytest.approx(view.seconds)
    assert found["observation"].seconds == pytest.approx(0.5)
    assert found["code"].seconds == 0


def test_rows_add_up_to_what_the_server_says() -> None:
    view = receipt(state_after(*TWO[:4], answered(2, 480, 137, seconds=1.0)))
    outer = rows(view).values()
    assert (view.cached, view.again, view.new) == (137, 283, 60)
    assert [sum(getattr(row, name) for row in outer) for name in ("tokens", "cached", "again", "new")] == [
        480,
        137,
        283,
        60,
    ]
    assert all(row.tokens == row.cached + row.new + row.again for row in outer)


def test_a_cache_that_was_lost_shows_as_read_again() -> None:
    view = receipt(state_after(*TWO[:4], answered(2, 480, 0)))
    found = rows(view)
    assert (view.again, view.new) == (420, 60)
    assert found["rules"].read == found["answer"].read == "re-read"
    assert found["observation"].read == "new"


def test_an_older_prompt_has_the_receipt_it_had() -> None:
    state = state_after(*TWO)
    assert count_prompts(state) == 2
    assert receipt(state, 1).rows == receipt(state_after(*TWO[:2])).rows
    assert view_receipt(state, 3) is None
    assert view_receipt(SessionState()) is None


def test_pieces_of_code_stand_under_their_part_and_share_its_tokens() -> None:
    state = state_after(*TWO, ChunkPinned(CART), ChunkDropped(TEST.place))
    view = receipt(state)
    pieces = [row for row in view.rows if row.inside]
    assert [row.place for row in pieces] == [CART.place, TEST.place]
    assert [(row.pinned, row.dropped) for row in pieces] == [(True, False), (False, True)]
    assert sum(row.tokens for row in pieces) == 100
    assert all(row.estimated for row in pieces)
    assert [row.label for row in view.rows].index(pieces[0].label) == [row.label for row in view.rows].index("code") + 1


def test_code_that_an_observation_shows_can_be_pinned_too() -> None:
    shown = Chunk("a.py", 1, 4, "z" * 50, 0.0)
    view = receipt(state_after(*TWO[:2], observed(shown), *TWO[3:]))
    (piece,) = [row for row in view.rows if row.place == shown.place]
    assert (piece.prompt, piece.tokens) == (2, 50)


def test_a_compaction_begins_anew() -> None:
    compacted = ContextCompacted(2, "so far so good", Author.MODEL, 30, pinned=(CART,))
    parts = (PromptPart("rules", 200), PromptPart("summary", 30))
    view = receipt(state_after(*TWO, compacted, built(3, parts, 230), answered(3, 240, 200)))
    assert list(rows(view)) == ["rules", "summary", "template"]
    assert (view.number, view.cached, view.again, view.new) == (3, 200, 0, 40)


def test_after_a_compaction_each_piece_stands_once() -> None:
    other = replace(CART, path="shop/tax.py")
    compacted = ContextCompacted(2, "so far so good", Author.MODEL, 30, pinned=(CART,), code=(other,))
    labels = ("rules", f"pinned {CART.place}", "code", f"code {other.place}", "summary")
    parts = tuple(PromptPart(label, 40) for label in labels)
    view = receipt(state_after(*TWO, compacted, built(3, parts, 200), answered(3, 210, 0)))
    assert [row.place for row in view.rows if row.place] == [CART.place, other.place]


def test_compacting_now_frees_the_steps_and_reads_the_code_that_stays() -> None:
    compacting = receipt(state_after(*TWO)).compacting
    assert compacting is not None
    assert (compacting.frees, compacting.reads) == (90, 100)
    assert compacting.seconds == pytest.approx(100 * 4.4 / 440)
    assert receipt(state_after(*TWO), 1).compacting is None


def test_nothing_is_freed_where_nothing_was_answered_that_could_be_summed_up() -> None:
    compacted = ContextCompacted(2, "so far so good", Author.MODEL, 30, code=(CART,))
    parts = (PromptPart("rules", 200), PromptPart("summary", 30), PromptPart("answer", 40))
    begun = (*TWO, compacted, built(3, parts, 270))
    stopped = ModelInterrupted(3, "Thought: I", InterruptCause.STOPPED, "stopped by the user")
    for story in (begun, (*begun, stopped)):
        compacting = receipt(state_after(*story)).compacting
        assert compacting is not None
        assert compacting.frees == 0
    again = receipt(state_after(*begun, stopped, built(3, (), 270), answered(3, 280, 0))).compacting
    assert again is not None
    assert again.frees > 0


def test_what_is_dropped_is_freed_and_what_is_pinned_stays() -> None:
    view = receipt(state_after(*TWO, ChunkDropped(TEST.place)))
    saved = rows(view, inside=True)[TEST.place].saves
    assert view.compacting is not None
    assert (view.compacting.frees, view.compacting.reads) == (90 + saved, 100 - saved)
    shown = Chunk("a.py", 1, 4, "z" * 50, 0.0)
    told = (*TWO[:2], observed(shown), *TWO[3:])
    assert rows(receipt(state_after(*told)), inside=True)[shown.place].saves == 0, "it goes by itself"
    view = receipt(state_after(*told, ChunkPinned(shown)))
    assert rows(view, inside=True)[shown.place].saves == 50
    assert view.compacting is not None
    assert (view.compacting.frees, view.compacting.reads) == (40, 150)


def test_code_that_is_a_part_of_its_own_is_counted_and_can_be_pinned() -> None:
    parts = (PromptPart("code", 5), PromptPart(f"code {CART.place}", 70), PromptPart(f"code {TEST.place}", 25))
    first = (built(1, (*FIRST[:2], *parts), 360), answered(1, 380, 0))
    view = receipt(state_after(*first, ChunkDropped(TEST.place)))
    own = {row.place: row for row in view.rows if row.place}
    assert [(row.tokens, row.estimated, row.inside) for row in own.values()] == [(70, False, False), (25, False, False)]
    assert [row.dropped for row in own.values()] == [False, True]
    assert view.compacting is not None
    assert (view.compacting.frees, view.compacting.reads) == (25, 75)


def test_a_pin_is_a_part_that_knows_its_place() -> None:
    after = (*TWO[:3], ChunkPinned(CART), built(2, (*NEXT, PromptPart("pinned", 9)), 459))
    (row,) = [row for row in receipt(state_after(*after)).rows if row.label == "pinned"]
    assert (row.place, row.pinned, row.tokens) == (CART.place, True, 9)


def asks_for_a_summary(through_seq: int = -1) -> tuple[Event, ...]:
    filled = ContextFilled(2, Purpose.EXECUTOR, 600, 700, through_seq)
    question = () if through_seq >= 0 else (*NEXT, PromptPart("summary", 30))
    prompt = PromptBuilt(2, Purpose.SUMMARY, 5, 570, "0" * 64, question, "http://a")
    return (observed(), filled, prompt)


def test_what_asks_for_a_summary_counts_as_new() -> None:
    view = receipt(state_after(*TWO, *asks_for_a_summary(), answered(2, 610, 520)))
    assert (view.purpose, view.cached, view.again, view.new) == (Purpose.SUMMARY, 520, 0, 90)
    assert [row.label for row in view.rows][-2:] == ["summary", "template"]


def test_a_prompt_that_was_made_shorter_for_its_summary_has_no_more_rows_than_it_has() -> None:
    seq = next(each.seq for each in state_after(*TWO).run.history if each.event is TWO[2])  # type: ignore[union-attr]
    view = receipt(state_after(*TWO, *asks_for_a_summary(seq - 2), answered(2, 410, 380)))
    assert [row.label for row in view.rows if not row.inside] == ["rules", "task", "code", "template"]
    assert sum(row.tokens for row in view.rows if not row.inside) == 410
    longer = receipt(state_after(*TWO, *asks_for_a_summary(seq), answered(2, 510, 480)))
    assert [row.label for row in longer.rows if not row.inside][3:] == ["answer", "observation", "template"]


def test_a_summary_done_without_is_no_part_of_what_comes_after() -> None:
    after = (*TWO, *asks_for_a_summary(), answered(2, 610, 520), built(3, NEXT, 540), answered(3, 580, 520))
    view = receipt(state_after(*after))
    labels = [row.label for row in view.rows if not row.inside]
    assert labels == ["rules", "task", "code", *["answer", "observation"] * 2, "template"]
    assert (view.again, view.new) == (0, 60)


def test_a_prompt_without_an_answer_has_no_figures() -> None:
    view = receipt(state_after(*TWO[:4]))
    assert (view.answered, view.tokens, view.new) == (False, 450, 0)
    died = ModelInterrupted(2, "Thought: s", InterruptCause.DIED, "gone")
    assert not receipt(state_after(*TWO[:4], died)).answered


def test_the_prompt_after_one_without_figures_still_adds_up() -> None:
    died = ModelInterrupted(2, "Thought: s", InterruptCause.DIED, "gone")
    view = receipt(state_after(*TWO[:4], died, built(2, (), 450), answered(2, 480, 380)))
    assert sum(row.tokens for row in rows(view).values()) == 480
    assert (view.cached, view.again, view.new) == (380, 40, 60)


def test_a_server_that_does_not_tell_its_cache_is_not_said_to_have_read_again() -> None:
    quiet = ModelObserved(ModelFacts("http://a", "m", 0, counts_tokens=False, tells_cache=False))
    view = receipt(state_after(quiet, *TWO[:4], answered(2, 480, 0)))
    assert (view.tells_cache, view.again, view.new) == (False, 0, 0)
    assert all(not row.read for row in view.rows)


def test_where_nobody_counts_the_tokens_are_an_estimate() -> None:
    uncounted = tuple(PromptPart(part.label, 0) for part in FIRST)
    found = rows(receipt(state_after(built(1, uncounted, 0))))
    assert all(row.estimated and row.tokens for row in found.values())
    assert found["code"].tokens == (288 + 82) // 4


def test_what_a_repo_or_server_wrote_is_made_harmless() -> None:
    evil = Chunk("a\x1b[2J.py", 1, 2, "text", 0.0, "s\x07")
    state = state_after(*TWO[:2], observed(evil), built(2, NEXT, 450), ModelAnswered(2, "", AnswerFigures(), "h\x1bx"))
    view = receipt(state)
    assert all(label.isprintable() for label in (view.endpoint, view.model, *(row.label for row in view.rows)))


@pytest.mark.parametrize("thought", ["", "what now?"])
def test_an_answer_that_stood_behind_a_thought_is_new_whether_or_not_anything_was_thought(thought: str) -> None:
    thinks = ModelObserved(ModelFacts("http://a", "big.gguf", 16_384, thinks=True))
    first = replace(answered(1, 400, 0), reasoning=thought)
    # The thought is not sent back, so the server finds only what stood before it.
    state = state_after(thinks, built(1, FIRST, 360), first, built(2, NEXT, 450), answered(2, 490, 398))
    view = receipt(state)
    assert (view.new, view.again) == (90, 2)
    assert state.run is not None
    assert (state.run.reads.new_tokens, state.run.reads.again_tokens) == (490, 2)
    (figure,) = [each.text for each in view_status(SessionUpdate(state)).figures if each.text.startswith("prompt: ")]
    assert figure.startswith("prompt: 90 new, 2 re-read")
