"""Transcript entries of single events, hooks and runs of checks. Events without interest for a person have none."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.checks.language_servers import Severity, describe_diagnostics
from agent_workbench.core.checks.results import (
    CheckPurpose,
    CheckResult,
    FailedCommand,
    Failure,
    all_passed,
    failed_commands,
)
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Author,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    CompactionAsked,
    ContextCompacted,
    ContextFilled,
    Event,
    HookAnswered,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    NotesOffered,
    PauseChanged,
    PlaybookFinished,
    PromptBuilt,
    ProposalReplaced,
    Recorded,
    ReflexionNoted,
    RepoInstructions,
    ScratchpadChanged,
    SessionEvent,
    SkillsChosen,
    StepUndone,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskStarted,
    TestsFinished,
    UserSaid,
)
from agent_workbench.core.hook_answers import HookVerdict, describe_answer
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import (
    ANSWER_SERVER,
    APPLY_EDITS,
    CHECKS,
    COMMIT,
    COMPACT,
    END_UNCHANGED,
    KEEP_CHANGES,
    MERGE,
    UNASKED,
    Verdict,
    describe_left_out,
    hunk_choice_summary,
    left_out_hunks,
)
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.views.blocks import Block, Entry, Tone
from agent_workbench.views.transcript_blocks import (
    FOLD_LINES,
    answer_blocks,
    chat_answer_blocks,
    chat_blocks,
    compaction_blocks,
    consult_blocks,
    full_context_blocks,
    interrupted_blocks,
    knowledge_blocks,
    message_blocks,
    pin_blocks,
    plan_blocks,
    prompt_blocks,
    proposed_plan_blocks,
    search_blocks,
    session_blocks,
    skill_blocks,
)

OWN_PROPOSALS = {
    COMMIT: "Commit",
    MERGE: "Merge",
    KEEP_CHANGES: "Keep",
    APPLY_EDITS: "Edits",
    COMPACT: "Summary",
    END_UNCHANGED: "Finish",
    ANSWER_SERVER: "Answer",
}
OWN_PROPOSAL_TEXT = {
    KEEP_CHANGES: "what the command changed",
    APPLY_EDITS: "that the task names",
    COMPACT: "of the older steps, to replace them",
    END_UNCHANGED: "with nothing changed",
    ANSWER_SERVER: "to the question of a server",
}
VERDICTS = {
    Verdict.APPROVE: ("•", "approved", Tone.GOOD),
    Verdict.REJECT: ("✗", "rejected", Tone.BAD),
    Verdict.SKIP: ("–", "skipped", Tone.WARN),
    Verdict.ABORT: ("✗", "aborted", Tone.BAD),
}
RESULTS = {
    ActionResult.FAILED: "failed",
    ActionResult.REFUSED: "refused",
    ActionResult.UNKNOWN: "unknown",
    ActionResult.STOPPED: "stopped",
}

LABEL = "Hook"

PURPOSES = {
    CheckPurpose.BASELINE: "before any change",
    CheckPurpose.AFTER_DIFF: "after the diff",
    CheckPurpose.ASKED: "asked for by the model",
    CheckPurpose.FINAL: "before the commit",
}
OUTPUT_LINES = 4
WHY_LINES = 3
INDENT_CELLS = 2
FAILED_BEFORE = "failed before the change"


class EntryContext(Struct, frozen=True):
    """State of the session at an event, from which its entry is made too.

    `outcome_shown`: the outcome of the running action was already shown. `checked`: checks ran on the newest content of
    the task. `purpose` is that of the last prompt, `tool` the one called last. `usual_endpoint` normally answers the
    executor; `other_endpoint` gave the last answer if it is another one.
    """

    outcome_shown: bool = False
    checked: bool = False
    purpose: Purpose = Purpose.EXECUTOR
    tool: str = ""
    usual_endpoint: str = ""
    other_endpoint: str = ""

    def name_of(self, event: ModelAnswered) -> str:
        """Return the endpoint of an answer, empty if it is the usual one."""
        return "" if self.usual_endpoint in ("", event.endpoint) else event.model or event.endpoint


def event_entry(recorded: Recorded, before: EntryContext) -> Entry | None:
    """Return the transcript entry of an event, None if there is nothing to show."""
    event = recorded.event
    if isinstance(event, SessionEvent):
        blocks = session_blocks(event)
    else:
        blocks = _step_blocks(recorded, before) or _work_blocks(recorded, before)
    return Entry(str(recorded.seq), tuple(blocks)) if blocks else None


def _step_blocks(recorded: Recorded, before: EntryContext) -> list[Block]:
    event = recorded.event
    match event:
        case TaskStarted():
            title = sanitize_line(f"{event.task}  {event.definition.title}")
            where = f"on {sanitize_line(event.workspace.branch, 100)}, from {event.workspace.base[:10]}"
            read = [Block(_instructions(each), Tone.DIM) for each in event.instructions]
            return [Block(title, Tone.TITLE, rule=True, space_before=True), Block(where, Tone.DIM), *read]
        case ActionRejected():
            return [Block(sanitize(event.reason, limit_chars=4000), Tone.BAD, "Invalid", Tone.BAD)]
        case ReflexionNoted():
            by = [Block(f"by {sanitize_line(before.other_endpoint, 60)}", Tone.DIM)] if before.other_endpoint else []
            return [Block(sanitize(event.text), Tone.WARN, "Reflexion", Tone.WARN, space_before=True), *by]
        case ScratchpadChanged() if event.by is not Author.WORKBENCH:
            return [Block(f"the scratchpad was written by the {event.by}", Tone.DIM, "Note")]
        case _:
            own = _model_blocks(recorded, before)
            return own or plan_blocks(event) or consult_blocks(event) or chat_blocks(event) or hook_blocks(event)


def _instructions(found: RepoInstructions) -> str:
    cut = f", {found.cut_bytes:,} of them cut" if found.cut_bytes else ""
    return f"{sanitize_line(found.path)} is in the prompt: {counted_text(found.size, 'byte')}{cut}"


def _model_blocks(recorded: Recorded, before: EntryContext) -> list[Block]:
    event = recorded.event
    match event:
        case SkillsChosen():
            return skill_blocks(event)
        case CodeRetrieved():
            return search_blocks(event, "your message" if before.purpose is Purpose.CHAT else "the task")
        case KnowledgeFound():
            return knowledge_blocks(event)
        case PromptBuilt():
            return prompt_blocks(event)
        case ModelAnswered() if before.purpose is Purpose.CHAT:
            return chat_answer_blocks(event)
        case ModelAnswered():
            return answer_blocks(event, before.purpose, before.name_of(event))
        case ModelInterrupted():
            return interrupted_blocks(event)
        case UserSaid():
            return message_blocks(event)
        case ChunkPinned() | ChunkDropped():
            return pin_blocks(event)
        case CompactionAsked():
            return [Block("you asked for a summary of the older steps", Tone.DIM, "Context")]
        case ContextFilled():
            return full_context_blocks(event)
        case ContextCompacted():
            return compaction_blocks(event)
        case _:
            return []


def _work_blocks(recorded: Recorded, before: EntryContext) -> list[Block]:
    event = recorded.event
    match event:
        case ActionProposed() | ProposalReplaced():
            return _proposal_blocks(event)
        case ActionDecided():
            return _decision_blocks(event)
        case AbortAsked():
            return [Block(sanitize_line(event.reason), Tone.BAD, "Abort", Tone.BAD)]
        case NotesOffered():
            many = counted_text(len(event.notes), "note")
            return [Block(f"{many} offered: {sanitize_line(event.origin, 200)}", Tone.DIM, "Knowledge")]
        case PauseChanged():
            said = "you paused: the model is not asked until you resume" if event.paused else "you resumed"
            return [Block(said, Tone.WARN if event.paused else Tone.DIM, "Pause")]
        case ActionFinished():
            return _finished_blocks(event, before)
        case _:
            return _end_blocks(recorded, checked=before.checked)


def _proposal_blocks(event: ActionProposed | ProposalReplaced) -> list[Block]:
    proposal = event.proposal
    if isinstance(event, ProposalReplaced) and proposal.hunks:
        left = "\n".join(sanitize_line(describe_left_out(hunk), 300) for hunk in left_out_hunks(proposal.hunks))
        return [
            Block(f"you {hunk_choice_summary(proposal.hunks)}", Tone.WARN, "Proposal"),
            Block(left, Tone.DIM),
        ]
    if isinstance(event, ProposalReplaced):
        who = "by you" if event.by is Author.USER else f"by the {event.by}"
        return [Block(f"changed {who}: {sanitize_line(event.reason)}", Tone.WARN, "Proposal")]
    if proposal.plan is not None:
        return proposed_plan_blocks(proposal)
    if proposal.tool == CHECKS:
        about = PURPOSES[proposal.purpose] if proposal.purpose is not None else "checks"
        commands = "\n".join(sanitize_line(command) for command in proposal.commands)
        return [
            Block(about, Tone.ACCENT, "Checks", space_before=True),
            Block(commands, Tone.DIM, fold_lines=FOLD_LINES),
        ]
    if proposal.tool in OWN_PROPOSALS:
        notes = proposal.tool == COMPACT and proposal.paths
        ours = "of the scratchpad, to replace it" if notes else OWN_PROPOSAL_TEXT.get(proposal.tool)
        first = ours or sanitize_line(proposal.text.strip().split("\n")[0])
        return [Block(first, Tone.ACCENT, OWN_PROPOSALS[proposal.tool], space_before=True)]
    return []


def _decision_blocks(event: ActionDecided) -> list[Block]:
    glyph, word, tone = VERDICTS[event.verdict]
    if event.by == UNASKED:
        return []
    who = sanitize_line(event.decider.replace("user", "you", 1) if event.by == "user" else event.decider)
    reason = f": {sanitize_line(event.reason)}" if event.reason else ""
    return [Block(f"{glyph} {word} by {who}{reason}", tone, "Gate")]


def _finished_blocks(event: ActionFinished, before: EntryContext) -> list[Block]:
    found = [
        Block(sanitize_line(each.text), Tone.BAD if each.severity is Severity.ERROR else Tone.WARN)
        for each in event.diagnostics
    ]
    heading = Block(f"{counted_text(len(found), 'new diagnostic')} in the changed files", Tone.WARN, "Diagnostics")
    return [*_result_blocks(event, before), *([heading, *found] if found else [])]


def _result_blocks(event: ActionFinished, before: EntryContext) -> list[Block]:
    if before.outcome_shown and event.result is ActionResult.OK:
        return []
    # Only a program colours its output: codes in a file that was read are shown.
    told = event.observation.removesuffix(describe_diagnostics(event.diagnostics))
    said = without_colours(told) if event.output else told
    text = sanitize(said.strip(), limit_chars=100_000)
    cut = f"\n… {event.cut_bytes:,} more bytes were cut" if event.cut_bytes else ""
    if event.result is not ActionResult.OK:
        return [Block(f"{RESULTS[event.result]}: {text}{cut}", Tone.BAD, "Result", Tone.BAD, fold_lines=FOLD_LINES)]
    if before.purpose is Purpose.CHAT and "\n" in text:
        lines = counted_text(text.count("\n") + 1, "line")
        return [Block(text + cut, label="Result", folded=f"⋯ {lines} of {sanitize_line(before.tool, 60)}")]
    return [Block(text + cut, Tone.PLAIN, "Result", fold_lines=FOLD_LINES, clips=True)] if text else []


def _playbook_blocks(event: PlaybookFinished) -> list[Block]:
    """Return the recap of a run, and the findings after a failure."""
    tone = Tone.BAD if event.failed else Tone.GOOD
    hosts = "\n".join(sanitize_line(host.text) for host in event.hosts) or "no host was counted"
    blocks = [
        Block(sanitize_line(event.request.text), tone, "Playbook", tone),
        Block(hosts, Tone.PLAIN, "Hosts", fold_lines=FOLD_LINES),
    ]
    if event.lint is not None:
        blocks.append(Block(sanitize(event.lint.text), Tone.WARN, "Lint", Tone.WARN, fold_lines=FOLD_LINES))
    return blocks


def _end_blocks(recorded: Recorded, *, checked: bool) -> list[Block]:
    event = recorded.event
    match event:
        case TaskCommitted():
            title = sanitize_line(event.message.strip().split("\n")[0])
            return [
                Block(f"{event.commit[:10]} on {sanitize_line(event.branch, 100)}: {title}", Tone.GOOD, "Committed")
            ]
        case TaskMerged():
            into = sanitize_line(event.outcome.into, 100)
            return [Block(f"{into} is at {event.outcome.commit[:10]} ({event.outcome.how})", Tone.GOOD, "Merged")]
        case PlaybookFinished():
            return _playbook_blocks(event)
        case TaskRolledBack():
            return [Block(f"to {event.to[:10]}: {sanitize_line(event.reason)}", Tone.WARN, "Rolled back", Tone.WARN)]
        case StepUndone():
            back = f"the diff of step {event.step}: {sanitize_line(', '.join(event.paths), 300)} are as before it"
            return [Block(back, Tone.WARN, "Undone", Tone.WARN)]
        case TaskFinished():
            said = f"{event.task} is {event.status.replace('_', ' ')}: {sanitize_line(event.reason)}"
            if event.status is not TaskStatus.DONE:
                return [Block(said, Tone.BAD, "✗", space_before=True)]
            return [Block(said, Tone.GOOD if checked else Tone.PLAIN, "✓" if checked else "•", space_before=True)]
        case _:
            return []


def hook_blocks(event: Event) -> list[Block]:
    """Return the blocks of a hook's answer; none for one without an objection, and for any other event."""
    match event:
        case HookAnswered(point=point) if point.is_proposal and event.verdict is not HookVerdict.NONE:
            tone = Tone.BAD if event.verdict is HookVerdict.REFUSE else Tone.WARN
            return [Block(sanitize_line(describe_answer(event.hook, event.verdict, event.reason)), tone, LABEL, tone)]
        case HookAnswered(failed=True):
            said = sanitize_line(f"{event.hook} failed at {event.point}: {event.reason}")
            return [Block(said, Tone.WARN, LABEL, Tone.WARN)]
        case _:
            return []


def check_entries(
    seq: int, event: TestsFinished, baseline: tuple[CheckResult, ...] | None = None, root: str = ""
) -> tuple[Entry, ...]:
    """Return a run of checks as a tree: each failed command is followed by an entry for each failure.

    `baseline` are the results before any change (None: unknown, or this is that run). `root` is the folder in which
    they ran.
    """
    failed = {each.result.command: each for each in failed_commands(event.results, baseline, root)}
    entries: list[Entry] = []
    blocks = [_head(event)]
    for result in event.results:
        command = failed.get(result.command)
        if command is None:
            blocks.append(Block(f"✓ {sanitize_line(result.command, 300)}  {result.seconds:.1f} s", Tone.GOOD))
            continue
        blocks += _command_blocks(command)
        entries += _numbered(seq, len(entries), Entry("", tuple(blocks)), *map(_failure_entry, command.failures))
        blocks = [Block(f"… and {command.more} more", Tone.DIM)] if command.more else []
    if event.restored_paths:
        blocks.append(
            Block(
                f"restored, because the checks changed it: {sanitize_line(', '.join(event.restored_paths))}", Tone.WARN
            )
        )
    if event.removed_paths:
        left = sanitize_line(", ".join(event.removed_paths))
        blocks.append(Block(f"removed, because no approved .gitignore covers it: {left}", Tone.DIM))
    if blocks:
        entries += _numbered(seq, len(entries), Entry("", tuple(blocks)))
    return tuple(entries)


def _numbered(seq: int, first: int, *entries: Entry) -> Iterator[Entry]:
    for number, entry in enumerate(entries, first):
        yield replace(entry, key=f"{seq}.{number}" if number else str(seq))


def _head(event: TestsFinished) -> Block:
    passed, good = sum(result.passed for result in event.results), all_passed(event.results)
    count = f"{passed} of {len(event.results)} passed" if not good else "all passed"
    return Block(f"{count}, {PURPOSES[event.purpose]}", Tone.GOOD if good else Tone.BAD, "Checks")


def _command_blocks(command: FailedCommand) -> Iterator[Block]:
    result = command.result
    ended = "did not end" if result.exit_code is None else f"exit {result.exit_code}"
    before = "  failed before, too" if command.before else ""
    line = f"✗ {sanitize_line(result.command, 300)}  {ended}, {result.seconds:.1f} s{before}"
    yield Block(line, Tone.WARN if command.before else Tone.BAD)
    output = sanitize(without_colours(result.output).strip(), limit_chars=60_000)
    if output and command.failures:
        lines = output.count("\n") + 1
        yield Block(output, Tone.DIM, folded=f"⋯ {counted_text(lines, 'line')} of output")
    elif output:
        yield Block(output, Tone.DIM, fold_lines=OUTPUT_LINES, fold_end=True, clips=True)


def _failure_entry(failure: Failure) -> Entry:
    place = failure.place
    where = sanitize_line(f"{place.path}:{place.line}", 300) if place is not None else ""
    tone = Tone.DIM if failure.before else Tone.BAD
    why = "\n".join(map(sanitize, failure.lines))
    why_tone = Tone.DIM if failure.before else Tone.PLAIN
    about = " · ".join(filter(None, (FAILED_BEFORE * failure.before, "" if where in failure.test else where)))
    blocks = (
        Block(f"✗ {sanitize_line(failure.test, 500)}", tone),
        *((Block(why, why_tone, fold_lines=WHY_LINES, clips=True, indent=INDENT_CELLS),) if why else ()),
        *((Block(about, Tone.DIM, indent=INDENT_CELLS),) if about else ()),
    )
    return Entry("", blocks, place)
