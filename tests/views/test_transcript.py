"""The transcript: the same made event by event or at once, live or read back."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.events import (
    ActionFinished,
    ActionResult,
    Author,
    ContextCompacted,
    ContextFilled,
    EndpointPassed,
    Event,
    ModelAnswered,
    ModelObserved,
    PromptBuilt,
    Recorded,
    RepoInstructions,
    SessionLeft,
    TaskFinished,
    TaskStarted,
    TestsFinished,
    UserSaid,
)
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.event_entries import check_entries
from agent_workbench.views.transcript import (
    Transcript,
    extend_transcript,
    thought_end,
    transcript_of,
    transcript_snapshots,
    view_steps,
)
from tests.fakes import runs


def recorded(events: tuple[Event, ...]) -> list[Recorded]:
    return [Recorded(seq, "2026-11-20T10:15:00.000000Z", event) for seq, event in enumerate(events)]


ALL = recorded((*runs.up_to_done(), *runs.started(), *runs.read_step(), SessionLeft("x")))


def test_event_by_event_is_the_same_as_at_once() -> None:
    state, transcript = SessionState(), Transcript()
    for each in ALL:
        state = fold(state, each)
        transcript = extend_transcript(transcript, each)
    assert transcript == transcript_of(state)
    assert transcript.entries


def test_the_steps_show_which_instructions_of_the_repository_were_read_and_what_was_cut() -> None:
    found = (RepoInstructions("AGENTS.md", "x", 12_000, 1_500), RepoInstructions("src/a\nb/CLAUDE.md", "y", 1))
    events = [replace(each, instructions=found) if isinstance(each, TaskStarted) else each for each in runs.started()]
    entries = transcript_of(fold_all(recorded(tuple(events)))).entries
    told = [block.text for entry in entries for block in entry.blocks]
    assert "AGENTS.md is in the prompt: 12,000 bytes, 1,500 of them cut" in told
    assert "src/a b/CLAUDE.md is in the prompt: 1 byte" in told


@given(st.integers(0, len(ALL)), st.integers(0, len(ALL)))
def test_a_replay_may_go_anywhere(here: int, there: int) -> None:
    trail = transcript_snapshots()
    transcript_of(fold_all(ALL[:here]), trail)
    assert transcript_of(fold_all(ALL[:there]), trail) == transcript_of(fold_all(ALL[:there]))


def test_nothing_new_gives_back_the_same_value() -> None:
    trail = transcript_snapshots()
    transcript = transcript_of(fold_all(ALL), trail)
    assert transcript_of(fold_all(ALL), trail) is transcript


def test_keys_of_entries_are_unique() -> None:
    keys = [entry.key for entry in transcript_of(fold_all(ALL)).entries]
    assert len(set(keys)) == len(keys)


@given(st.text(max_size=60))
def test_a_streaming_answer_of_any_shape_is_shown(text: str) -> None:
    update = SessionUpdate(fold_all(ALL), Live(streaming=Streaming(text, 1, 1.0)))
    assert view_steps(update).unsettled


def test_a_check_mark_stands_only_where_checks_passed() -> None:
    ended = TaskFinished(runs.T1, TaskStatus.DONE, "committed")
    events = (*runs.up_to_done(), ended)
    unchecked = tuple(each for each in events if not isinstance(each, TestsFinished))

    def marks(events: tuple[Event, ...]) -> list[str]:
        blocks = (block for entry in transcript_of(fold_all(recorded(events))).entries for block in entry.blocks)
        return [block.label for block in blocks if "is done" in block.text or "approved by" in block.text]

    assert {*marks(events[:-1])} == {"Gate", "✓"}
    assert marks(unchecked)[-1] == "•"
    told = "".join(block.text for entry in transcript_of(fold_all(recorded(events))).entries for block in entry.blocks)
    assert "✓ approved" not in told


def said(transcript: Transcript) -> list[str]:
    return [block.text for entry in transcript.entries for block in entry.blocks]


def unsettled(state: SessionState, live: Live | None = None) -> list[str]:
    view = view_steps(SessionUpdate(state, live or Live()))
    return [block.text for entry in view.unsettled for block in entry.blocks]


def test_a_word_stands_at_the_end_until_a_prompt_holds_it() -> None:
    before = (*runs.opening(), *runs.started(), *runs.answered(1, "Thought: one"), UserSaid("use integers"))
    state = fold_all(recorded(before))
    assert unsettled(state)[-2:] == ["use integers", "will be read with the next step"]
    assert "use integers" not in said(transcript_of(state))
    after = fold_all(recorded((*before, *runs.answered(2, "Thought: two"))))
    texts = said(transcript_of(after))
    assert texts.index("use integers") < texts.index("two")
    assert unsettled(after) == []


def test_a_word_that_no_prompt_held_says_so_when_the_task_is_over() -> None:
    events = (*runs.opening(), *runs.started(), UserSaid("wait"), TaskFinished(runs.T1, TaskStatus.FAILED, "x"))
    texts = said(transcript_of(fold_all(recorded(events))))
    assert texts[texts.index("wait") + 1] == "was not read: the task was over"


def test_what_was_thought_is_one_line_that_unfolds() -> None:
    answer = ModelAnswered(
        1, "Thought: so\nAction: finish\n{}", AnswerFigures(), "http://here", reasoning="a\nb\x1b[2J"
    )
    (entry,) = transcript_of(fold_all(recorded((*runs.opening(), *runs.started(), answer)))).entries[-1:]
    block = next(block for block in entry.blocks if block.label == "Thinking")
    assert block.folded.startswith("thought for 7 characters")
    assert block.text == "a\nb␛[2J"


def answered_by(endpoint: str, model: str) -> ModelAnswered:
    return ModelAnswered(1, "Thought: so", AnswerFigures(answer_tokens=5, dollars=0.00231), endpoint, model)


def test_an_entry_names_who_answered_when_it_is_not_the_usual_one_and_what_it_cost() -> None:
    usual = runs.opening()[2]
    assert isinstance(usual, ModelObserved)
    passed = EndpointPassed(Purpose.EXECUTOR, usual.facts.endpoint, "it is loading")
    other = replace(usual.facts, endpoint="https://else.example", model="big")
    events = (
        *(*runs.opening(), *runs.started(), answered_by(usual.facts.endpoint, "demo")),
        *(passed, ModelObserved(other), answered_by(other.endpoint, "big"), answered_by(usual.facts.endpoint, "demo")),
    )
    texts = said(transcript_of(fold_all(recorded(events))))
    heads = [text for text in texts if text.startswith("step 1")]
    assert heads == ["step 1  5 tokens · $0.0023", "step 1  5 tokens · $0.0023 · by big", heads[0]]
    assert any("does not answer the executor" in text for text in texts)
    assert "it is loading" in texts


def test_what_a_server_lacks_stands_in_the_transcript_before_any_task() -> None:
    seen = runs.opening()[2]
    assert isinstance(seen, ModelObserved)
    lacks = ModelObserved(replace(seen.facts, off=("no grammar: answers are checked when they came",)))
    transcript = transcript_of(fold_all(recorded((*runs.opening()[:2], lacks))))
    assert said(transcript)[-1] == "no grammar: answers are checked when they came"


def test_a_summary_is_a_marked_entry_that_unfolds() -> None:
    summary = "\n".join(f"line {number}" for number in range(40))
    events = (
        ContextFilled(9, Purpose.EXECUTOR, 15_800, 16_384),
        ContextCompacted(9, summary, Author.USER, 20, diff=runs.RIGHT, failing="x"),
    )
    entries = transcript_of(fold_all(recorded((*runs.up_to_first_diff(), *events)))).entries[-2:]
    assert "15,800 of 16,384 tokens" in entries[0].blocks[0].text
    head, text, kept = entries[1].blocks
    assert (head.text, head.rule) == ("older steps became a summary", True)
    assert (text.text, text.fold_lines > 0) == (summary, True)
    assert (
        kept.text
        == "written by you; kept beside it: rules, task, notes and your messages, the change so far, the failing output"
    )


def test_a_summary_that_streams_is_no_step() -> None:
    asked = PromptBuilt(2, Purpose.SUMMARY, 3, 900, "0" * 64)
    state = fold_all(recorded((*runs.up_to_reflexion(), asked)))
    texts = unsettled(state, Live(streaming=Streaming("Summary: The cart was read", 4, 1.0)))
    assert texts == ["The cart was read▌"]


def test_the_end_of_a_thought_begins_with_a_line_or_seldom_moves() -> None:
    lines = "".join(f"thought number {number}\n" for number in range(2_000))
    assert lines.endswith(thought_end(lines))
    assert thought_end(lines).startswith("thought number")
    assert len(thought_end(lines)) < 2_100
    one = "word " * 4_000
    starts = {end - len(thought_end(one[:end])) for end in range(len(one))}
    assert len(starts) <= 10
    assert max(len(thought_end(one[:end])) for end in range(0, len(one), 100)) <= 4_000


def test_output_is_shown_without_its_colours_and_a_file_as_it_is() -> None:
    coloured, plain = "\x1b[31m\x1b[1mFAILED\x1b[0m test_a\x1b[K\x1b(B", "FAILED test_a"
    ran = TestsFinished(CheckPurpose.ASKED, (CheckResult("test", 1, coloured, 1.0),))
    assert plain in [block.text for entry in check_entries(3, ran) for block in entry.blocks]
    events = (*runs.up_to_reflexion(), *runs.read_step()[:-1])
    for output, shown in ((coloured, plain), ("", "␛[31m␛[1mFAILED␛[0m test_a␛[K␛(B")):
        ended = ActionFinished(ProposalId("P-2"), ActionResult.OK, coloured, output=output)
        assert said(transcript_of(fold_all(recorded((*events, ended)))))[-1] == shown


def test_what_checks_changed_and_left_is_named() -> None:
    ran = TestsFinished(CheckPurpose.ASKED, (CheckResult("test", 0, "", 1.0),), ("a.py",), (".cache/", "x\ty"))
    (entry,) = check_entries(3, ran)
    assert [block.text for block in entry.blocks][-2:] == [
        "restored, because the checks changed it: a.py",
        "removed, because no approved .gitignore covers it: .cache/, x y",
    ]
