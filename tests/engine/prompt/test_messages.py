import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.scripted_model import ScriptedModel
from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose, CheckResult
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import CommitId, ProposalId, TaskId
from agent_workbench.core.intents import EditScratchpad
from agent_workbench.core.model import AnswerFigures, Message, Purpose, Role
from agent_workbench.core.plan import Task
from agent_workbench.core.proposal_kinds import CheckProposal, DiffProposal, SummaryProposal
from agent_workbench.core.proposals import CHECKS, Verdict
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.repo.workspace import WorkspaceFacts
from agent_workbench.core.settings import DEFAULT_TOOLS, Approval, Approvals, Permission
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.prompt.messages import build_parts, prompt_sha, to_messages
from agent_workbench.engine.prompt.parts import MOST_WORDS, Part
from agent_workbench.engine.prompt.prompt_text import SUMMARY
from tests.engine.front import in_front_of
from tests.engine.stage import FINISH, OPEN, T1, Stage, a_stage, call, change, reflexion, reopened
from tests.engine.test_executor import run
from tests.fakes.ports import Cut, Hang, Saying
from tests.llama_fixtures import LlamaServer

P1 = ProposalId("P-1")
STARTED = e.TaskStarted(
    T1, Task(T1, "It", goal="Done"), WorkspaceFacts("/w", "b", CommitId("c"), "t"), ("test",), DEFAULT_TOOLS, 1
)


def state_of(story: Sequence[e.Event]) -> SessionState:
    return fold_all(e.Recorded(seq, "", event) for seq, event in enumerate(story))


def grows(before: tuple[Part, ...], after: tuple[Part, ...]) -> bool:
    return after[: len(before)] == before


def well_formed(messages: tuple[Message, ...]) -> bool:
    roles = [message.role for message in messages]
    alternating = all(one is not other for one, other in pairwise(roles))
    return alternating and roles[0] is Role.SYSTEM and roles[1] is Role.USER and roles[-1] is Role.USER


# What may happen at each point of a run, told as the engine would record it.
TEXT = st.text("ab \n", min_size=1, max_size=8)
EDIT = st.builds(e.ScratchpadChanged, st.sampled_from([T1, TaskId("T-2")]), TEXT, st.just(e.Author.USER))
DIFF = DiffProposal(P1, "write_diff", "d", 1)
CHUNKS = (Chunk("a.py", 1, 2, "a\nb", 1.0), Chunk("b.py", 4, 4, "c", 0.5))
HIDDEN = Chunk("c.py", 1, 1, "d", 0.0)
SAID = st.builds(e.UserSaid, TEXT.filter(str.strip))
PINNED = st.builds(e.ChunkPinned, st.sampled_from([*CHUNKS, HIDDEN]), st.booleans())
DROPPED = st.builds(e.ChunkDropped, st.sampled_from([chunk.place for chunk in CHUNKS]))
ASIDE = st.just(e.ApprovalChanged(Permission.DIFF, always=True)) | st.just(e.CompactionAsked())
NOISE = st.lists(EDIT | SAID | PINNED | DROPPED | ASIDE, max_size=2)


@st.composite
def asked(draw: st.DrawFn, purpose: Purpose) -> list[e.Event]:
    """A prompt, perhaps in vain at first, with what happens while it is answered."""
    story: list[e.Event] = []
    built = e.PromptBuilt(1, purpose, 1, 1, "sha")
    for _ in range(draw(st.integers(0, 2))):
        story += [built, *draw(NOISE)]
        vain = draw(st.sampled_from(["stopped", "died", "refused", "killed"]))
        if vain in {"stopped", "died"}:
            story.append(e.ModelInterrupted(1, "half", e.InterruptCause(vain)))
        story += [*draw(NOISE), e.SessionResumed() if vain == "killed" else e.RetryAsked()]
        story += draw(NOISE)
    return [*story, built, *draw(NOISE)]


@st.composite
def steps(draw: st.DrawFn) -> list[e.Event]:
    """One step of a run."""
    story = draw(asked(Purpose.EXECUTOR))
    answer = e.ModelAnswered(1, draw(TEXT), AnswerFigures(), "")
    match draw(st.sampled_from(["cut", "rejected", "refused", "skipped", "read", "diff", "replaced", "unknown"])):
        case "cut":
            return [*story, e.ModelInterrupted(1, "cut", e.InterruptCause.LENGTH), *draw(NOISE)]
        case "rejected":
            return [*story, answer, e.ActionRejected(1, "no step")]
        case "refused":
            return [
                *story,
                answer,
                e.ActionProposed(DIFF),
                *draw(NOISE),
                e.ActionDecided(P1, Verdict.REJECT, "user", "no"),
            ]
        case "skipped":
            return [*story, answer, e.ActionProposed(DIFF), *draw(NOISE), e.ActionDecided(P1, Verdict.SKIP, "user")]
        case "unknown":
            return [*story, answer, e.ActionProposed(DIFF), e.ActionFinished(P1, e.ActionResult.UNKNOWN, "what")]
        case "replaced":
            replaced = e.ProposalReplaced(replace(DIFF, text="e"), "edited", e.Author.USER)
            return [*story, answer, e.ActionProposed(DIFF), replaced, e.ActionFinished(P1, e.ActionResult.OK, "ok")]
        case "read":
            return [*story, answer, e.ActionProposed(DIFF), e.ActionFinished(P1, e.ActionResult.OK, draw(TEXT) + ".")]
    failing = e.TestsFinished(CheckPurpose.AFTER_DIFF, (CheckResult("test", 1, "out", 1.0),))
    done = e.ActionFinished(P1, e.ActionResult.OK, "applied")
    tested = e.ActionFinished(P1, e.ActionResult.OK, "checks failed")
    story += [answer, e.ActionProposed(DIFF), e.PatchApplied(P1, ("a",), "sha", "u"), done, failing, tested]
    story += draw(asked(Purpose.REFLEXION))
    return [*story, e.ModelAnswered(1, "Reflexion: so", AnswerFigures(), ""), *draw(NOISE), e.ReflexionNoted(1, "so")]


@pytest.mark.parametrize("asked_first", [True, False])
@pytest.mark.parametrize("end", ["loop", "vain", "undone"])
def test_what_the_user_did_since_stays_where_a_prompt_is_answered_again(end: str, *, asked_first: bool) -> None:
    failing = (CheckResult("test", 1, "out", 1.0),)
    started = replace(STARTED, definition=replace(STARTED.definition, accept_tests=("test",)), wording=e.FAILING_FIRST)
    checks = CheckProposal(P1, CHECKS, "test", 0, purpose=CheckPurpose.BASELINE)
    before: list[e.Event] = [
        e.ActionProposed(checks),
        e.TestsFinished(CheckPurpose.BASELINE, failing),
        e.ActionFinished(P1, e.ActionResult.OK, "it fails"),
    ]
    own: list[e.Event] = [
        e.UserSaid("mind b"),
        e.ChunkPinned(HIDDEN),
        e.ScratchpadChanged(T1, "a note of mine", e.Author.USER),
    ]
    built, answer = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha"), e.ModelAnswered(1, "WRONG", AnswerFigures(), "")
    diff = replace(DIFF, id=ProposalId("P-2"))
    ends: dict[str, list[e.Event]] = {
        "loop": [e.ModelInterrupted(1, "WRONG", e.InterruptCause.REPETITION)],
        "vain": [answer, e.ActionRejected(1, "the same", again=True)],
        "undone": [
            *(answer, e.ActionProposed(diff), e.PatchApplied(diff.id, ("a",), "sha", "u")),
            e.StepUndone(diff.id, 1, ("a",), "t", afresh=True),
        ],
    }
    after = [*own, *ends[end]] if asked_first or end == "loop" else [*ends[end][:1], *own, *ends[end][1:]]
    run_ = state_of([started, *before, e.CodeRetrieved("q", CHUNKS), built, *after])
    told = "\n".join(part.text for part in build_parts(run_, Purpose.EXECUTOR))
    assert run_.run is not None
    assert run_.run.tries_afresh
    assert all(text in told for text in ("it fails", "mind b", HIDDEN.place, "a note of mine"))
    assert "WRONG" not in told


def test_what_a_later_attempt_looked_at_stays_only_where_it_is_new() -> None:
    """Each attempt would look the same up again, and say the same about it."""
    started = replace(STARTED, definition=replace(STARTED.definition, accept_tests=("test",)), wording=e.FAILING_FIRST)

    def attempt(words: str, *shown: Chunk) -> list[e.Event]:
        built = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha")
        found = e.ActionFinished(P1, e.ActionResult.OK, "it is so", shown=shown)
        looked = e.ModelAnswered(1, f"LOOK {words}", AnswerFigures(), "")
        changed = e.ModelAnswered(2, f"CHANGE {words}", AnswerFigures(), "")
        applied = (e.ActionProposed(DIFF), e.PatchApplied(P1, ("a",), "sha", "u"))
        return [built, looked, found, built, changed, *applied, e.StepUndone(P1, 2, ("a",), "t", afresh=True)]

    def told(*attempts: list[e.Event]) -> list[str]:
        story = [started, e.CodeRetrieved("q", CHUNKS), *(event for each in attempts for event in each)]
        parts = build_parts(state_of(story), Purpose.EXECUTOR)
        return [part.text for part in parts if "LOOK" in part.text or "CHANGE" in part.text]

    first, again, new = attempt("first"), attempt("again"), attempt("new", HIDDEN)
    assert told(first) == told(first, again) == told(first, again, again) == ["LOOK first"]
    assert told(first, again, new, again) == ["LOOK first", "LOOK new"]


@settings(max_examples=50)
@given(st.lists(steps(), min_size=1, max_size=5), NOISE)
def test_prompts_only_grow_at_their_end(told: list[list[e.Event]], first: list[e.Event]) -> None:
    story = [STARTED, *first, e.CodeRetrieved("q", CHUNKS), *(event for step in told for event in step)]
    before: tuple[Part, ...] = ()
    answer = ""
    for place, event in enumerate(story):
        if isinstance(event, e.ModelAnswered):
            answer = event.text
        elif isinstance(event, e.ModelInterrupted) and event.cause is e.InterruptCause.LENGTH:
            answer = event.partial
        if isinstance(event, e.PromptBuilt):
            parts = build_parts(state_of(story[:place]), event.purpose)
            assert grows(before, parts), (before, parts)
            assert messages_grow(to_messages(before), answer, to_messages(parts))
            assert well_formed(to_messages(parts))
            assert build_parts(state_of(story[:place]), event.purpose) == parts
            before, answer = parts, ""


def test_a_prompt_after_many_reflexions_costs_no_more_for_each_of_them() -> None:
    """Twice the steps take twice the calls, not four times as many: what was tried is not gathered anew each time."""
    assert calls_for(200) < 3 * calls_for(100)


def calls_for(rounds: int) -> int:
    """Return how many functions are called to build the prompt after so many diffs that failed."""
    failing = e.TestsFinished(CheckPurpose.AFTER_DIFF, (CheckResult("test", 1, "out", 1.0),))
    story: list[e.Event] = [STARTED]
    for _ in range(rounds):
        story += [e.ActionProposed(DIFF), e.PatchApplied(P1, ("a",), "sha", "u"), failing]
        story += [e.PromptBuilt(1, Purpose.REFLEXION, 1, 1, "sha"), e.ModelAnswered(1, "so", AnswerFigures(), "")]
    state, called = state_of(story), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        build_parts(state, Purpose.REFLEXION)
    finally:
        sys.setprofile(None)
    return called


def messages_grow(before: tuple[Message, ...], answer: str, after: tuple[Message, ...]) -> bool:
    """Return whether a server that has read `before`, and has said `answer` to it, knows the beginning of `after`."""
    if answer:
        said = (*before, Message(Role.ASSISTANT, answer))
        return after[: len(said)] == said and len(after) == len(said) + 1
    if not before:
        return True
    return len(after) == len(before) and after[:-1] == before[:-1] and after[-1].text.startswith(before[-1].text)


SUMMARY_BUILT = e.PromptBuilt(1, Purpose.SUMMARY, 1, 1, "sha")
COMPACT = SummaryProposal(ProposalId("P-9"), "compact", "short", 1)


@st.composite
def compactions(draw: st.DrawFn) -> list[e.Event]:
    """A compaction, perhaps after summaries that the user refused."""
    story: list[e.Event] = [e.ContextFilled(1, Purpose.EXECUTOR, 9, 9)]
    for _ in range(draw(st.integers(0, 2))):
        story += [SUMMARY_BUILT, *draw(NOISE), e.ModelAnswered(1, "Summary: no", AnswerFigures(), "")]
        refusal = e.ActionDecided(COMPACT.id, Verdict.REJECT, "user", "no")
        story += [e.ActionProposed(COMPACT), *draw(NOISE), refusal, *draw(NOISE)]
    story += [SUMMARY_BUILT, *draw(NOISE), e.ModelAnswered(1, "Summary: short", AnswerFigures(), "")]
    story += [e.ActionProposed(COMPACT), *draw(NOISE), e.ActionDecided(COMPACT.id, Verdict.APPROVE, "user")]
    return [*story, e.ActionStarted(COMPACT.id)]


STORIES = st.lists(steps(), min_size=1, max_size=3).map(lambda told: [event for step in told for event in step])


@settings(max_examples=50)
@given(STORIES, compactions(), STORIES, st.floats(0, 1), NOISE)
def test_a_compaction_begins_anew_and_prompts_grow_from_there(
    first: list[e.Event], filled: list[e.Event], then: list[e.Event], share: float, meanwhile: list[e.Event]
) -> None:
    story = [STARTED, e.CodeRetrieved("q", CHUNKS), *first, *filled]
    through = int(share * (len(story) - 1))
    compacted = e.ContextCompacted(1, "in short", e.Author.MODEL, through, CHUNKS[:1], "a diff", "it failed")
    story += [compacted, *meanwhile, e.ActionFinished(COMPACT.id, e.ActionResult.OK, "")]
    story += then
    before: tuple[Part, ...] = ()
    for place, event in enumerate(story):
        if event is compacted:
            before = ()
        if not isinstance(event, e.PromptBuilt):
            continue
        parts = build_parts(state_of(story[:place]), event.purpose)
        assert grows(before, parts), (before, parts)
        assert well_formed(to_messages(parts))
        if event.purpose is Purpose.SUMMARY:
            assert parts[-1].text == SUMMARY
        if place > story.index(compacted):
            text = "\n".join(part.text for part in parts)
            assert all(kept in text for kept in ("in short", "a diff", "it failed", "a.py:1-2\na\nb"))
            assert "Summary: " not in text, "of how it was summed up nothing stays"
            words = [each.text for each in story[:place] if isinstance(each, e.UserSaid)][-MOST_WORDS:]
            assert all(f"> {word.splitlines()[0]}" in text for word in words), "what the user said stays"
        before = parts


def test_a_summary_says_whether_the_newest_step_is_shown_all_the_same() -> None:
    built = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha")
    answer = e.ModelAnswered(1, "Thought: hm", AnswerFigures(), "")
    story: list[e.Event] = [STARTED, built, answer, e.ActionRejected(1, "no")]
    for through, words in ((1, "only the newest of these steps is shown below"), (3, "are not shown any more")):
        compacted = e.ContextCompacted(1, "in short", e.Author.MODEL, through)
        parts = build_parts(state_of([*story, compacted]), Purpose.EXECUTOR)
        (summary,) = [part.text for part in parts if part.label == "summary"]
        assert words in summary
        assert ("Thought: hm" in [part.text for part in parts]) == (through == 1)


def chosen(*names: str) -> e.SkillsChosen:
    return e.SkillsChosen(T1, tuple(e.SkillText(name, f"How to {name}.") for name in names), by=e.Author.USER)


def test_a_compaction_begins_with_the_newest_choice_of_skills() -> None:
    started = replace(STARTED, wording=3)
    built = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha")
    answer = e.ModelAnswered(1, "Thought: hm", AnswerFigures(), "")
    story: list[e.Event] = [started, chosen("a", "b"), built, answer, e.ActionRejected(1, "no"), chosen("b", "c")]
    labels = [part.label for part in build_parts(state_of(story), Purpose.EXECUTOR)]
    assert labels == ["rules", "skill a", "skill b", "task", "answer", "observation", "skill a", "skill c"]
    story.append(e.ContextCompacted(1, "in short", e.Author.MODEL, 2))
    parts = build_parts(state_of(story), Purpose.EXECUTOR)
    assert [part.label for part in parts][:4] == ["rules", "skill b", "skill c", "task"]
    assert [part.label for part in parts].count("skill c") == 1
    story += [built, answer, e.ActionRejected(1, "no"), chosen("c")]
    assert build_parts(state_of(story), Purpose.EXECUTOR)[-1].text.startswith("The user dropped the skill b")


def test_a_choice_before_the_first_prompt_replaces_the_one_before() -> None:
    started = replace(STARTED, wording=3)
    story: list[e.Event] = [started, chosen("a", "b"), e.CodeRetrieved("q", CHUNKS), chosen("b")]
    labels = [part.label for part in build_parts(state_of(story), Purpose.EXECUTOR)]
    assert labels[:3] == ["rules", "skill b", "task"]
    assert "skill a" not in labels


def test_what_the_user_writes_during_an_answer_comes_after_it() -> None:
    edit = e.ScratchpadChanged(T1, "mind the gap", e.Author.USER)
    built = e.PromptBuilt(1, Purpose.EXECUTOR, 1, 1, "sha")
    answer = e.ModelAnswered(1, "Thought: hm", AnswerFigures(), "")
    parts = build_parts(state_of([STARTED, built, edit, answer, e.ActionRejected(1, "no")]), Purpose.EXECUTOR)
    assert [part.label for part in parts] == ["rules", "task", "answer", "scratchpad", "observation"]


def test_notes_of_other_tasks_are_not_told() -> None:
    edit = e.ScratchpadChanged(TaskId("T-2"), "another matter", e.Author.USER)
    assert len(build_parts(state_of([STARTED, edit]), Purpose.EXECUTOR)) == 2


def test_what_the_model_wrote_itself_is_not_told_again() -> None:
    note = e.ScratchpadChanged(T1, "- my note", e.Author.MODEL)
    assert len(build_parts(state_of([STARTED, note]), Purpose.EXECUTOR)) == 2


def test_without_a_run_there_is_nothing_to_say() -> None:
    assert build_parts(SessionState(), Purpose.EXECUTOR) == ()
    assert to_messages(()) == ()


def test_the_rules_show_every_open_tool_and_no_other() -> None:
    few = replace(STARTED, tools=("read_file", "write_diff", "commit", "nonsense"))
    rules = build_parts(state_of([few]), Purpose.EXECUTOR)[0].text
    assert 'read_file  {"path": "…", "first_line": 1, "last_line": 1}' in rules
    assert "write_diff  <unified diff>" in rules
    assert "commit" not in rules.split("Tools:")[1]
    assert "nonsense" not in rules


ROLES = st.sampled_from(Role)


@given(
    st.lists(st.builds(Message, ROLES, st.text(max_size=4)), max_size=4),
    st.lists(st.builds(Message, ROLES, st.text(max_size=4)), max_size=4),
)
def test_the_hash_tells_prompts_apart(one: list[Message], other: list[Message]) -> None:
    assert (prompt_sha(tuple(one)) == prompt_sha(tuple(other))) == (one == other)


def prompts_of(stage: Stage) -> list[tuple[Part, ...]]:
    """Return every prompt of the journal, built anew from what was recorded before it."""
    story = stage.journal()
    built = [(place, each.event) for place, each in enumerate(story) if isinstance(each.event, e.PromptBuilt)]
    return [build_parts(fold_all(story[:place]), event.purpose) for place, event in built]


async def test_a_run_of_every_kind_keeps_its_prompts(tmp_path: Path) -> None:
    sayings: list[Saying] = [
        call("read_file", '{"path": "answer.txt"}'),
        "nonsense",
        Cut("Thought: on and on"),
        change("wrong", "first"),
        change("wrong", "rigth"),
        reflexion(),
        Hang("Thought: hm"),
    ]
    async with a_stage(tmp_path, sayings, approvals=Approvals(check=Approval.AUTO)) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.submit(EditScratchpad(T1, "", "one\n"))
            await front.reject(Permission.DIFF, "no")
            await front.approve(Permission.DIFF)
            await front.until(lambda it: it.live.streaming and it.live.streaming.text == "Thought: hm")
            await front.submit(EditScratchpad(T1, "one\n", "one\ntwo\n"))
            await front.until(lambda it: "two" in it.state.scratchpad(T1))
        more = [change("rigth", "right"), FINISH]
        async with reopened(stage, more) as again, in_front_of(again) as front:
            await front.approve(Permission.DIFF)
            await front.gate(Permission.COMMIT)
            requests = [*stage.model.requests, *again.model.requests]
            prompts = prompts_of(again)
            assert [to_messages(parts) for parts in prompts] == [request.messages for request in requests]
            assert all(grows(before, after) for before, after in pairwise(prompts))
            assert all(well_formed(request.messages) for request in requests)
            built = [event for event in again.events if isinstance(event, e.PromptBuilt)]
            assert [event.sha for event in built] == [prompt_sha(request.messages) for request in requests]
            receipt = [part.label for event in built for part in event.parts]
            assert receipt == [part.label for part in prompts[-1]]
            assert [event.tokens for event in built][-1] == sum(part.tokens for event in built for part in event.parts)


async def test_a_real_server_reads_almost_nothing_twice(tmp_path: Path, llama_server: LlamaServer) -> None:
    texts = [
        call("read_file", '{"path": "answer.txt"}'),
        call("list_files"),
        change("wrong", "rigth"),
        reflexion(),
        change("rigth", "right"),
        FINISH,
    ]
    model = ScriptedModel(llama_server.model(), {"T-1": texts, "T-1:reflexion": [texts[3]]})
    async with a_stage(tmp_path, approvals=OPEN, headless=True, model=model) as stage:
        assert (await run(stage, "T-1")).reason == "T-1 done: committed"
        figures = [event.figures for event in stage.events if isinstance(event, e.ModelAnswered)]
        assert len(figures) == 6
        # Sampled letter by letter, an answer is spelled in other tokens than when it is read; what is before it is not.
        assert all(after.cached_tokens >= before.prompt_tokens for before, after in pairwise(figures)), figures
        counted = [event.tokens for event in stage.events if isinstance(event, e.PromptBuilt)]
        assert all(0 < real.prompt_tokens - count < 20 * 6 for real, count in zip(figures, counted, strict=True))
