"""A full context: who sums up, what the user may do about it, what stays, and where it ends."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core import events as e
from agent_workbench.core.errors import ContextOverflow, ExitCode, ModelUnavailable
from agent_workbench.core.intents import (
    CompactContext,
    DropChunk,
    EditProposal,
    PinChunk,
    RejectProposal,
    SayToModel,
    SkipProposal,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposal_kinds import SummaryProposal
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.settings import Approval, Limits, Permission, Settings
from agent_workbench.engine.compacted_context import JOIN_TOKENS, MIN_CHARS, PromptBudget, compact_context
from agent_workbench.engine.runtime.budget import clip
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import view_gate
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, WRITES_DIFFS, Stage, a_stage, call, change, kinds, reflexion, reopened
from tests.engine.test_executor import run
from tests.fakes.ports import FACTS, Break, Cut, GivenChunks, Hang, Saying, words
from tests.fakes.runs import of_kind

SMALL_TOKENS = 1_350
SMALL = replace(FACTS, context_tokens=SMALL_TOKENS)
SUMMARY = "Summary: the long file holds nothing, answer.txt has to say right."
RIGHT = change("wrong", "right")


def reading(name: str) -> str:
    return call("read_file", json.dumps({"path": name}))


FEW_TOOLS = Settings(tools_allowed=("read_file", "write_diff", "finish"))
READS = [reading("long1.txt"), reading("long2.txt")]


def add_long_files(stage: Stage, lines: int = 30) -> None:
    """Add files of which two do not fit into the small context."""
    for number in (1, 2):
        text = "".join(f"file {number} line {line} has ten words and tells nothing\n" for line in range(lines))
        stage.user.write(f"long{number}.txt", text)
    stage.user.commit("Add long files")
    stage.model.facts = SMALL


def of(stage: Stage, kind: type[e.Event]) -> list[e.Event]:
    return [event for event in stage.events if isinstance(event, kind)]


def compacted(stage: Stage) -> e.ContextCompacted:
    """Return the only compaction."""
    (found,) = [event for event in stage.events if isinstance(event, e.ContextCompacted)]
    return found


def text_of(stage: Stage, request: int) -> str:
    return "\n".join(message.text for message in stage.model.requests[request].messages)


def purposes(stage: Stage) -> list[Purpose]:
    return [request.purpose for request in stage.model.requests]


async def test_unattended_the_policy_takes_the_models_summary(tmp_path: Path) -> None:
    sayings = [*READS, SUMMARY, RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        assert (await run(stage)).reason == "T-1 done: committed"
        story = kinds(stage.events)
        start = story.index("ContextFilled")
        assert story[start : start + 8] == [
            *("ContextFilled", "PromptBuilt", "ModelAnswered", "ActionProposed", "ActionDecided"),
            *("ActionStarted", "ContextCompacted", "ActionFinished"),
        ]
        (decided,) = [
            event for event in stage.events if isinstance(event, e.ActionDecided) and event.by == "policy:unattended"
        ]
        assert compacted(stage).by is e.Author.MODEL
        asked = stage.model.requests
        assert purposes(stage) == [Purpose.EXECUTOR] * 2 + [Purpose.SUMMARY] + [Purpose.EXECUTOR] * 2
        assert asked[2].messages[: len(asked[1].messages)] == asked[1].messages, (
            "it is asked of what the server has read"
        )
        assert 'root ::= "Summary: "' in asked[2].grammar
        assert asked[3].messages[0] == asked[1].messages[0]
        after = text_of(stage, 3)
        assert "the long file holds nothing" in after
        assert "file 2 line 29" in after, "the last step stands as it was"
        assert "file 1 line 29" not in after
        assert all(request.prompt_tokens + request.answer_tokens <= SMALL_TOKENS for request in asked)
        assert stage.state.run is not None
        assert stage.state.run.tool_calls == 4
        assert [request.answered for request in asked] == [0, 1, 0, 2, 3]
        assert decided.verdict == "approve"


async def test_the_user_reads_edits_and_lets_it_through(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*READS, SUMMARY, RIGHT, FINISH], approvals=OPEN, settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        async with in_front_of(stage) as front:
            await front.start()
            waits = await front.gate(Permission.SUMMARY)
            assert (waits.text, of_kind(SummaryProposal, waits).fallback) == (SUMMARY.removeprefix("Summary: "), False)
            edited = await front.edit(Permission.SUMMARY, "only answer.txt matters\n")
            assert edited.text == "only answer.txt matters"
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert (compacted(stage).by, compacted(stage).summary) == (e.Author.USER, "only answer.txt matters")
        assert "only answer.txt matters" in text_of(stage, 3)


async def test_what_is_told_at_the_gate_is_what_comes_of_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [*READS, SUMMARY, RIGHT, FINISH], approvals=OPEN, settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.SUMMARY)
            assert front.now is not None
            gate, diff = view_gate(front.now), view_diff(front.now)
            edited = await front.edit(Permission.SUMMARY, "only answer.txt matters")
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
    (filled,) = [event for event in stage.events if isinstance(event, e.ContextFilled)]
    before, after = filled.prompt_tokens, stage.model.requests[3].prompt_tokens
    outlook = of_kind(SummaryProposal, edited).outlook
    assert outlook is not None
    assert (outlook.before, outlook.after) == (before, after)
    longer = words(SUMMARY.removeprefix("Summary: ")) - words("only answer.txt matters")
    assert gate.more == f"frees {before - after - longer:,} of {before:,} tokens"
    said = " ".join(block.text for block in diff.notes)
    assert "this replaces step 1." in said
    assert "Verbatim: step 2." in said


@pytest.mark.parametrize("text", ["  \n", "too long " * 400])
async def test_a_summary_that_cannot_be_is_refused_and_the_old_one_waits(tmp_path: Path, text: str) -> None:
    async with a_stage(tmp_path, [*READS, SUMMARY], approvals=OPEN, settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        async with in_front_of(stage) as front:
            await front.start()
            waits = await front.gate(Permission.SUMMARY)
            assert "summary" in await front.notice(EditProposal(waits.id, text))
            assert await front.gate(Permission.SUMMARY) == waits


async def test_a_refused_summary_is_written_again_and_at_last_by_us(tmp_path: Path) -> None:
    more = [f"Summary: another account of all that was done, number {number}" for number in (2, 3)]
    async with a_stage(
        tmp_path, [*READS, SUMMARY, *more, RIGHT, FINISH], approvals=OPEN, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage, 78)
        stage.model.facts = replace(FACTS, context_tokens=2_400)
        async with in_front_of(stage) as front:
            await front.start()
            for number in range(3):
                waits = await front.gate(Permission.SUMMARY)
                assert not of_kind(SummaryProposal, waits).fallback
                await front.submit(RejectProposal(waits.id, f"reason {number}"))
                await front.passed(waits)
            ours = await front.gate(Permission.SUMMARY)
            assert of_kind(SummaryProposal, ours).fallback
            assert "read_file" in ours.text
            assert "long1.txt" in ours.text
            for refusal in (RejectProposal(ours.id, "no"), SkipProposal(ours.id)):
                assert "there is no room without a summary" in await front.notice(refusal)
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert purposes(stage)[2:5] == [Purpose.SUMMARY] * 3
        assert "The user rejected that: reason 0" in text_of(stage, 3)
        for before, after in pairwise(stage.model.requests[:5]):
            assert after.messages[: len(before.messages)] == before.messages
        assert compacted(stage).by is e.Author.WORKBENCH
        assert "reason 0" not in text_of(stage, 5), "how it came to its summary is no part of it"


async def test_passing_over_the_models_summary_takes_ours(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [*READS, SUMMARY, Hang("Thought: hm")], approvals=OPEN, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage)
        async with in_front_of(stage) as front:
            await front.start()
            await front.skip(Permission.SUMMARY)
            assert of_kind(SummaryProposal, await front.gate(Permission.SUMMARY)).fallback
            await front.approve(Permission.SUMMARY)
            await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert compacted(stage).by is e.Author.WORKBENCH


@pytest.mark.parametrize("rule", [Approval.AUTO, Approval.DENY])
async def test_the_settings_decide(tmp_path: Path, rule: Approval) -> None:
    summaries = [SUMMARY] if rule is Approval.AUTO else []
    sayings = [*READS, *summaries, RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, approvals=replace(OPEN, summary=rule), settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.MERGE)
        assert compacted(stage).by is (e.Author.MODEL if rule is Approval.AUTO else e.Author.WORKBENCH)
        by = {event.by for event in stage.events if isinstance(event, e.ActionDecided)}
        assert f"policy:summary={rule}" in by


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize(
    "vain",
    [
        Cut("Summary: on and on"),
        Break("Summary: half a"),
        "Summary: …",
        "",
        call("list_files"),
        ModelUnavailable("it died"),
        ContextOverflow("too long after all", prompt_tokens=SMALL_TOKENS + 100, context_tokens=SMALL_TOKENS),
    ],
    ids=["cut", "no end", "no words", "empty", "a step", "died", "overflow"],
)
async def test_where_the_model_cannot_sum_up_the_workbench_does(tmp_path: Path, vain: Saying) -> None:
    limits = Limits(consecutive_failure_threshold=1, max_tool_calls_per_task=4)
    settings = replace(WRITES_DIFFS, limits=limits)
    sayings = [*READS, vain, RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, settings=settings, approvals=OPEN, headless=True) as stage:
        add_long_files(stage)
        assert (await run(stage)).reason == "T-1 done: committed", "it counts as no call and no failure"
        ours = compacted(stage)
        assert ours.by is e.Author.WORKBENCH
        assert 'read_file {"path": "long1.txt"}: ok: long1.txt, lines 1 to 30 of 30' in ours.summary
        assert not of(stage, e.TroubleMet)
        why = {"Summary: …": "too short for a summary: 0 ", "": "too short", call("list_files"): "that is a step"}
        refused = [event.reason for event in stage.events if isinstance(event, e.ActionRejected)]
        assert not isinstance(vain, str) or [why[vain] in reason for reason in refused] == [True]


async def test_a_server_that_refuses_the_prompt_as_too_long_is_asked_for_a_summary(tmp_path: Path) -> None:
    full = ContextOverflow("too long", prompt_tokens=1_100, context_tokens=1_000)
    sayings: list[Saying] = [reading("long1.txt"), full, SUMMARY, RIGHT, FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, settings=WRITES_DIFFS) as stage:
        add_long_files(stage, 5)
        stage.model.facts = FACTS
        assert (await run(stage)).reason == "T-1 done: committed"
        (filled,) = of(stage, e.ContextFilled)
        assert isinstance(filled, e.ContextFilled)
        assert (filled.prompt_tokens, filled.context_tokens) == (1_100, 1_000)
        assert stage.model.requests[2].messages[: len(stage.model.requests[0].messages)] == (
            stage.model.requests[0].messages
        ), "the summary is asked of what fitted before"
        assert "file 1 line 4" not in text_of(stage, 2)
        assert "file 1 line 4" in text_of(stage, 3)


async def test_a_server_that_says_nothing_of_its_size_is_believed(tmp_path: Path) -> None:
    facts = replace(FACTS, context_tokens=0)
    sayings: list[Saying] = [reading("long1.txt"), ContextOverflow("the server answered with nothing"), SUMMARY]
    async with a_stage(
        tmp_path, [*sayings, RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage, 5)
        stage.model.facts = facts
        assert (await run(stage)).reason == "T-1 done: committed"
        assert compacted(stage).by is e.Author.MODEL


async def test_one_observation_larger_than_the_context_ends_in_no_loop(tmp_path: Path) -> None:
    async with a_stage(
        tmp_path, [reading("long1.txt"), SUMMARY, RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage, 300)
        assert (await run(stage)).reason == "T-1 done: committed"
        (filled,) = of(stage, e.ContextFilled)
        assert isinstance(filled, e.ContextFilled)
        assert filled.prompt_tokens > 2 * SMALL_TOKENS
        assert filled.through_seq >= 0, "the summary is asked of the prompt before"
        after = text_of(stage, 2)
        assert "characters cut" in after
        assert "file 1 line 0" in after
        assert all(request.prompt_tokens <= SMALL_TOKENS for request in stage.model.requests)


async def test_found_code_that_does_not_fit_is_left_out_of_the_first_prompt(tmp_path: Path) -> None:
    lines = "\n".join(f"line {line} of a long piece of code" for line in range(40))
    found = tuple(Chunk(f"code{number}.py", 1, 40, lines, 1.0) for number in range(4))
    retriever = GivenChunks(found)
    async with a_stage(
        tmp_path, [RIGHT, FINISH], approvals=OPEN, headless=True, retriever=retriever, settings=WRITES_DIFFS
    ) as stage:
        for chunk in found:
            stage.user.write(chunk.path, chunk.text + "\n")
        stage.user.commit("Add code")
        stage.model.facts = replace(FACTS, context_tokens=1_600)
        assert (await run(stage)).reason == "T-1 done: committed"
        assert purposes(stage) == [Purpose.EXECUTOR] * 2, "there was nothing to sum up"
        assert "code0.py:1-40" in text_of(stage, 0)
        assert "code3.py:1-40" not in text_of(stage, 0)
        assert [chunk.path for chunk in compacted(stage).code] == ["code0.py"]


async def test_what_stays_stays_as_it_is_now(tmp_path: Path) -> None:
    found = (Chunk("kept.py", 2, 3, "two\nthree", 1.0), Chunk("gone.py", 1, 1, "gone", 0.5))
    sayings = [
        call("write_diff", "--- a/kept.py\n+++ b/kept.py\n@@ -1,2 +1,3 @@\n+zero\n one\n two\n"),
        reflexion("the answer is not right yet"),
        *READS,
        SUMMARY,
        RIGHT,
        FINISH,
    ]
    retriever = GivenChunks(found)
    async with a_stage(
        tmp_path, sayings, approvals=replace(OPEN, summary=Approval.ASK), retriever=retriever, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage)
        stage.user.write("kept.py", "one\ntwo\nthree\nfour\n")
        stage.user.write("gone.py", "gone\n")
        stage.user.commit("Add code")
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.state.run and it.state.run.tool_calls >= 1)
            await front.submit(PinChunk("kept.py:2-3"))
            await front.submit(DropChunk("gone.py:1-1"))
            await front.submit(SayToModel("mind the spelling\nof right"))
            await front.until(lambda it: it.state.run and it.state.run.dropped)
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        event = compacted(stage)
        assert [(chunk.place, chunk.text) for chunk in event.pinned] == [("kept.py:3-4", "two\nthree")]
        assert "+zero" in event.diff
        assert "Checks failed." in event.failing
        after = text_of(stage, purposes(stage).index(Purpose.SUMMARY) + 1)
        assert all(text in after for text in ("kept.py:3-4\ntwo\nthree", "+zero", "Checks failed.", "> of right"))
        assert "gone.py:1-1" not in after


async def test_no_secret_is_sent_not_even_to_be_counted(tmp_path: Path) -> None:
    secret = "a-value-nobody-may-know"
    found = (Chunk("kept.py", 1, 2, f"one\n{secret}", 1.0),)
    sayings = [*READS, f"Summary: the key in kept.py reads {secret}, and nothing else matters", RIGHT, FINISH]
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.ASK)
    async with a_stage(
        tmp_path,
        sayings,
        approvals=approvals,
        retriever=GivenChunks(found),
        secrets={"MY_TOKEN": secret},
        settings=WRITES_DIFFS,
    ) as stage:
        add_long_files(stage)
        stage.user.write("kept.py", f"one\n{secret}\nthree\n")
        stage.user.commit("Add code")
        count = stage.model.count_tokens
        counted: list[str] = []

        async def counting(texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
            counted.extend(texts)
            return await count(texts, purpose)

        stage.model.count_tokens = counting  # type: ignore[method-assign]
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.SUMMARY)
            assert "the model is told its name instead" in await front.notice(SayToModel(f"the key is {secret}"))
            await front.submit(PinChunk("kept.py:1-2"))
            await front.edit(Permission.SUMMARY, f"there is a key {secret}")
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.DIFF)
        assert [chunk.text for chunk in compacted(stage).pinned] == ["one\n«redacted:MY_TOKEN»"]
        sent = [message.text for request in stage.model.requests for message in request.messages]
        assert any("one\n«redacted:MY_TOKEN»" in text for text in counted)
        assert "> the key is «redacted:MY_TOKEN»" in sent[-1]
        assert not [text for text in (*sent, *counted) if secret in text]


@pytest.mark.parametrize("skips", [True, False])
async def test_the_user_may_want_a_summary_and_do_without_it(tmp_path: Path, *, skips: bool) -> None:
    sayings = [READS[0], RIGHT, SUMMARY, FINISH]
    async with a_stage(tmp_path, sayings, approvals=replace(OPEN, diff=Approval.ASK), settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        stage.model.facts = FACTS
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            assert "before the next step" in await front.notice(CompactContext())
            assert "already" in await front.notice(CompactContext())
            await front.approve(Permission.DIFF)
            waits = await front.gate(Permission.SUMMARY)
            assert not of_kind(SummaryProposal, waits).fallback
            await (front.skip if skips else front.approve)(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert len(of(stage, e.ContextCompacted)) == int(not skips)
        last, before = stage.model.requests[-1].messages, stage.model.requests[-2].messages
        assert (last[: len(before)] == before) is skips


async def test_a_summary_that_is_wanted_of_a_server_of_unknown_size_leaves_what_has_room(tmp_path: Path) -> None:
    lines = "\n".join(f"line {number} of the code that has to stay as it is" for number in range(60))
    retriever = GivenChunks((Chunk("code.py", 1, 60, lines, 1.0),))
    sayings = [*READS, RIGHT, SUMMARY, FINISH]
    approvals = replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO)
    async with a_stage(tmp_path, sayings, approvals=approvals, retriever=retriever, settings=WRITES_DIFFS) as stage:
        add_long_files(stage)
        stage.user.write("code.py", lines + "\n")
        stage.user.commit("Add code")
        stage.model.facts = replace(FACTS, context_tokens=0, counts_tokens=False)
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            await front.submit(PinChunk("code.py:1-60"))
            await front.submit(CompactContext())
            await front.approve(Permission.DIFF)
            await front.gate(Permission.MERGE)
        assert [chunk.text for chunk in compacted(stage).pinned] == [lines]


async def test_what_is_pinned_is_whole_as_long_as_there_is_room(tmp_path: Path) -> None:
    lines = "\n".join(f"line {number} of the code that has to stay" for number in range(40))
    other = "\n".join(f"line {number} of other code that has to stay" for number in range(10))
    retriever = GivenChunks((Chunk("code.py", 1, 40, lines, 1.0), Chunk("other.py", 1, 10, other, 0.5)))
    sayings = [*READS, SUMMARY, RIGHT, FINISH]
    async with a_stage(
        tmp_path, sayings, approvals=replace(OPEN, summary=Approval.ASK), retriever=retriever, settings=FEW_TOOLS
    ) as stage:
        add_long_files(stage, 40)
        stage.user.write("code.py", lines + "\n")
        stage.user.write("other.py", other + "\n")
        stage.user.commit("Add code")
        stage.model.facts = replace(FACTS, context_tokens=1_600)
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.SUMMARY)
            await front.submit(PinChunk("code.py:1-40"))
            await front.submit(PinChunk("other.py:1-10"))
            await front.approve(Permission.SUMMARY)
            await front.gate(Permission.MERGE)
        assert [chunk.text for chunk in compacted(stage).pinned] == [lines, other]
        assert all(request.prompt_tokens + request.answer_tokens <= 1_600 for request in stage.model.requests)


async def test_what_stays_fills_the_room_that_there_is_and_no_more(tmp_path: Path) -> None:
    texts = [
        "\n".join(f"line {at} of {number} is code that nothing else says" for at in range(8)) for number in range(8)
    ]
    chunks = tuple(Chunk(f"code{number}.py", 1, 8, text, 1.0) for number, text in enumerate(texts))
    notes = "\n".join(f"note {number} of what was learned" for number in range(300))
    added = "".join(f"+row {number} of a new file\n" for number in range(200))
    sayings = [
        call("write_diff", f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,200 @@\n{added}"),
        reflexion(),
        RIGHT,
        FINISH,
    ]
    approvals = replace(OPEN, commit=Approval.ASK)
    async with a_stage(
        tmp_path, sayings, approvals=approvals, headless=True, retriever=GivenChunks(chunks), settings=FEW_TOOLS
    ) as stage:
        for chunk in chunks:
            stage.user.write(chunk.path, f"{chunk.text}\n")
        stage.user.commit("Add code")
        stage.model.facts = FACTS
        assert (await run(stage)).exit_code is ExitCode.PARKED
        async with reopened(stage) as again:
            await again.session.record(e.ScratchpadChanged(T1, notes, e.Author.USER))
            whole, cut = 0, 0
            for tokens in range(800, 6_000, 400):
                await again.session.record(e.ContextFilled(1, Purpose.EXECUTOR, tokens, tokens, by=e.Author.USER))
                context = await again.session.tool_context()
                budget = PromptBudget(context)
                kept = await compact_context(context, SUMMARY, e.Author.USER)
                bare = replace(kept, code=(), repeated=(), diff="", failing="", newest_apart=False)
                bare = replace(bare, through_seq=again.state.seq, piece_chars=MIN_CHARS, notes_chars=budget.notes_chars)
                (noted,) = await budget.count([clip(notes, budget.notes_chars)])
                fixed = await budget.size_after(bare)
                share = max(0, budget.target_tokens(fixed) - fixed) // 3
                if tokens >= 1_600:  # below, what is told of a diff that has no room may be longer than its share
                    assert share * 2 // 5 <= words(kept.diff) <= share, tokens
                most = min(budget.max_tokens, budget.target_tokens(fixed) + noted)
                size = await budget.size_after(kept)
                assert size <= most, tokens
                places = {each.place for each in kept.code}
                left_out = [each for each in chunks if each.place not in places]
                for chunk in left_out[:1]:
                    more = replace(kept, code=(*kept.code, chunk), notes_chars=budget.notes_chars)
                    assert await budget.size_after(more) > most - JOIN_TOKENS * len(more.code), tokens
                if kept.notes_chars < len(notes):
                    more_notes = words(notes[: kept.notes_chars]) - noted
                    assert most - size <= more_notes // 8 + JOIN_TOKENS, tokens
                whole, cut = whole + (not left_out), cut + bool(left_out)
            assert (whole > 2, cut > 2) == (True, True)


async def test_there_is_nothing_to_sum_up_before_the_first_step(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [Hang("Thought: hm")], approvals=OPEN, settings=WRITES_DIFFS) as stage,
        in_front_of(stage) as front,
    ):
        assert "no task" in await front.notice(CompactContext())
        await front.start()
        await front.until(lambda it: it.live.streaming and it.live.streaming.text)
        assert "no steps yet" in await front.notice(CompactContext())


async def test_a_server_swapped_for_one_with_a_smaller_context(tmp_path: Path) -> None:
    sayings = [*READS, RIGHT, FINISH]
    async with a_stage(
        tmp_path, sayings, approvals=replace(OPEN, diff=Approval.ASK, summary=Approval.AUTO), settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage)
        stage.model.facts = FACTS
        async with in_front_of(stage) as front:
            await front.start()
            await front.gate(Permission.DIFF)
            stage.model.facts = replace(SMALL, endpoint="http://other")
            await front.approve(Permission.DIFF)
            await front.gate(Permission.MERGE)
        assert purposes(stage)[-2:] == [Purpose.EXECUTOR] * 2, "even a summary would not have fitted"
        assert compacted(stage).by is e.Author.WORKBENCH
        last = stage.model.requests[-1]
        assert last.prompt_tokens + last.answer_tokens <= SMALL_TOKENS
        assert len([event for event in stage.events if isinstance(event, e.ModelObserved)]) == 2


async def test_compactions_in_a_row_end_in_trouble_with_figures(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [READS[0]], approvals=OPEN, settings=WRITES_DIFFS) as stage:
        add_long_files(stage, 5)
        stage.model.facts = FACTS
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.state.run and it.state.run.tool_calls == 1)
            stage.model.facts = replace(FACTS, context_tokens=300)
            await front.approve(Permission.SUMMARY)
            trouble = (await front.trouble()).state.trouble
            assert trouble is not None
            assert "the context of 300 tokens is too small for T-1" in trouble.what
            assert "larger context" in trouble.advice


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (e.ContextFilled, 1),
        (e.PromptBuilt, 3),
        (e.ModelAnswered, 3),
        (e.ActionProposed, 4),
        (e.ActionDecided, 4),
        (e.ActionStarted, 4),
        (e.ContextCompacted, 1),
        (e.ActionFinished, 4),
    ],
)
@pytest.mark.slow(quick=2)
async def test_killed_between_any_two_events_of_a_compaction_it_goes_on(
    tmp_path: Path, kind: type[e.Event], number: int, *, before: bool
) -> None:
    async with a_stage(
        tmp_path, [*READS, SUMMARY, RIGHT, FINISH], approvals=OPEN, headless=True, settings=WRITES_DIFFS
    ) as stage:
        add_long_files(stage)
        await run_until_killed(stage, kind, number, before=before)
        assert of(stage, e.ContextFilled) or (kind is e.ContextFilled and before)
        answered = len([event for event in stage.events if isinstance(event, e.ModelAnswered)])
        left = [SUMMARY, RIGHT, FINISH][max(0, answered - 2) :]
        async with reopened(stage, left) as again:
            again.model.facts = SMALL
            ending = await run_unattended(again.session, again.recorder, (T1,))
            assert ending.exit_code is ExitCode.DONE, ending
            assert again.read_back() == again.state
        assert len(of(stage, e.ContextCompacted)) == 1
        assert not [
            event
            for event in stage.events
            if isinstance(event, e.ActionFinished) and event.result is e.ActionResult.UNKNOWN
        ]
        assert not [event for event in stage.events if isinstance(event, e.ContextFilled)][1:]
