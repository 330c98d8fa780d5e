"""Each event as an entry of the transcript; events that say nothing to a person have none."""

from typing import Protocol

from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    ApprovalChanged,
    Author,
    CodeRetrieved,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    PromptBuilt,
    ProposalReplaced,
    Recorded,
    ReflexionNoted,
    RetryAsked,
    ScratchpadChanged,
    SessionLeft,
    SessionResumed,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskStarted,
    TestsFinished,
    TroubleMet,
)
from agent_workbench.core.inert import inert, inert_line
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.proposals import CHECKS, COMMIT, KEEP_CHANGES, MERGE, Verdict
from agent_workbench.core.views.answers import WRITE_DIFF, take_apart
from agent_workbench.core.views.check_blocks import PURPOSES, check_blocks
from agent_workbench.core.views.tones import Block, Entry, Tone

FOLD_LINES = 6
OUR_PROPOSALS = {COMMIT: "Commit", MERGE: "Merge", KEEP_CHANGES: "Keep"}
VERDICTS = {
    Verdict.APPROVE: ("✓", "approved", Tone.GOOD),
    Verdict.REJECT: ("✗", "rejected", Tone.BAD),
    Verdict.SKIP: ("–", "skipped", Tone.WARN),
    Verdict.ABORT: ("✗", "aborted", Tone.BAD),
}
RESULTS = {ActionResult.FAILED: "failed", ActionResult.REFUSED: "refused", ActionResult.UNKNOWN: "unknown"}


class Before(Protocol):
    """What an entry depends on besides its event."""

    @property
    def told(self) -> bool:
        """True when what the running action came to was shown already."""

    @property
    def purpose(self) -> Purpose:
        """What the last prompt was for."""


def entry_of(recorded: Recorded, before: Before) -> Entry | None:
    """Return the entry of an event in the transcript, None where there is nothing to show."""
    blocks = _session_blocks(recorded) or _step_blocks(recorded, before) or _work_blocks(recorded, before)
    return Entry(str(recorded.seq), tuple(blocks)) if blocks else None


def _session_blocks(recorded: Recorded) -> list[Block]:
    event = recorded.event
    match event:
        case TroubleMet():
            said = Block(inert(event.what, limit_chars=4000), Tone.BAD, "Trouble", Tone.BAD, space_before=True)
            return [said, *([Block(inert(event.advice, limit_chars=4000), Tone.WARN)] if event.advice else [])]
        case RetryAsked():
            return [Block("tried again", Tone.DIM)]
        case SessionResumed():
            return [Block("the session was taken up again", Tone.DIM, rule=True, space_before=True)]
        case SessionLeft():
            return [Block(inert_line(event.reason), Tone.DIM, "Session")]
        case ApprovalChanged():
            how = "approved by itself" if event.always else "asked about again"
            return [Block(f"from now on each {event.kind} is {how}", Tone.WARN, "Gate")]
        case ModelObserved():
            facts = event.facts
            scripted = ", answers are scripted" if facts.scripted else ""
            return [
                Block(f"{inert_line(facts.model, 120)}, {facts.context_tokens:,} tokens{scripted}", Tone.DIM, "Model")
            ]
        case _:
            return []


def _step_blocks(recorded: Recorded, before: Before) -> list[Block]:
    event = recorded.event
    match event:
        case TaskStarted():
            title = inert_line(f"{event.task}  {event.definition.description}")
            where = f"on {inert_line(event.workspace.branch, 100)}, from {event.workspace.base[:10]}"
            return [Block(title, Tone.TITLE, rule=True, space_before=True), Block(where, Tone.DIM)]
        case CodeRetrieved():
            many = len(event.chunks)
            places = "\n".join(inert_line(chunk.place) for chunk in event.chunks)
            said = Block(f"{many} piece{'' if many == 1 else 's'} of code found for the task", Tone.DIM, "Search")
            return [said, *([Block(places, Tone.DIM, fold_lines=2)] if places else [])]
        case PromptBuilt():
            parts = ", ".join(f"{inert_line(part.label, 60)} {part.tokens:,}" for part in event.parts)
            told = f"{event.tokens:,} tokens" + (f"; new: {parts}" if parts else "")
            return [Block(told, Tone.DIM, "Prompt", fold_lines=1)]
        case ModelAnswered():
            return _answer_blocks(event, before)
        case ModelInterrupted():
            return _broken_blocks(event)
        case ActionRejected():
            return [Block(inert(event.reason, limit_chars=4000), Tone.BAD, "Not taken", Tone.BAD)]
        case ReflexionNoted():
            return [Block(inert(event.text), Tone.WARN, "Reflexion", Tone.WARN, space_before=True)]
        case ScratchpadChanged() if event.by is not Author.WORKBENCH:
            return [Block(f"the scratchpad was written by the {event.by}", Tone.DIM, "Note")]
        case _:
            return []


def _answer_blocks(event: ModelAnswered, before: Before) -> list[Block]:
    parts = take_apart(event.text)
    if parts.reflects or before.purpose is Purpose.REFLEXION:
        return []
    figures = event.figures
    speed = f" · {figures.tokens_per_second:.0f}/s" if figures.tokens_per_second else ""
    cost = f"  {figures.answer_tokens:,} tokens{speed}" if figures.answer_tokens else ""
    blocks = [Block(f"step {event.step}{cost}", Tone.TITLE, rule=True, space_before=True)]
    if parts.thought:
        blocks.append(Block(inert(parts.thought), label="Thought"))
    if parts.action:
        blocks.append(Block(inert_line(parts.action), Tone.ACCENT, "Action"))
        fold = 4 if parts.action == WRITE_DIFF else FOLD_LINES
        blocks += (
            [Block(inert(parts.body.rstrip()), Tone.DIM, fold_lines=fold, clips=True)] if parts.body.strip() else []
        )
    return blocks


def _broken_blocks(event: ModelInterrupted) -> list[Block]:
    why = inert_line(event.what) or str(event.cause)
    said = Block(f"the answer has no end and is not carried out: {why}", Tone.BAD, "Broken off", Tone.BAD)
    partial = event.partial.strip()
    return [said, *([Block(inert(partial), Tone.DIM, fold_lines=3)] if partial else [])]


def _work_blocks(recorded: Recorded, before: Before) -> list[Block]:
    event = recorded.event
    match event:
        case ActionProposed() | ProposalReplaced():
            return _proposal_blocks(event)
        case ActionDecided():
            return _decision_blocks(event)
        case AbortAsked():
            return [Block(inert_line(event.reason), Tone.BAD, "Abort", Tone.BAD)]
        case TestsFinished():
            return check_blocks(event)
        case ActionFinished():
            return _result_blocks(event, before)
        case _:
            return _end_blocks(recorded)


def _proposal_blocks(event: ActionProposed | ProposalReplaced) -> list[Block]:
    proposal = event.proposal
    if isinstance(event, ProposalReplaced):
        who = "by you" if event.by is Author.USER else f"by the {event.by}"
        return [Block(f"changed {who}: {inert_line(event.reason)}", Tone.WARN, "Proposal")]
    if proposal.tool == CHECKS:
        about = PURPOSES[proposal.purpose] if proposal.purpose is not None else "checks"
        commands = "\n".join(inert_line(command) for command in proposal.commands)
        return [
            Block(about, Tone.ACCENT, "Checks", space_before=True),
            Block(commands, Tone.DIM, fold_lines=FOLD_LINES),
        ]
    if proposal.tool in OUR_PROPOSALS:
        first = (
            inert_line(proposal.text.strip().split("\n")[0])
            if proposal.tool != KEEP_CHANGES
            else "what the command changed"
        )
        return [Block(first, Tone.ACCENT, OUR_PROPOSALS[proposal.tool], space_before=True)]
    return []


def _decision_blocks(event: ActionDecided) -> list[Block]:
    glyph, word, tone = VERDICTS[event.verdict]
    if event.by == "policy:read=auto":
        return []
    who = "you" if event.by == "user" else inert_line(event.by)
    reason = f": {inert_line(event.reason)}" if event.reason else ""
    return [Block(f"{glyph} {word} by {who}{reason}", tone, "Gate")]


def _result_blocks(event: ActionFinished, before: Before) -> list[Block]:
    if before.told and event.result is ActionResult.OK:
        return []
    text = inert(event.observation.strip(), limit_chars=100_000)
    cut = f"\n… {event.cut_bytes:,} bytes more were cut" if event.cut_bytes else ""
    if event.result is not ActionResult.OK:
        return [Block(f"{RESULTS[event.result]}: {text}{cut}", Tone.BAD, "Result", Tone.BAD, fold_lines=FOLD_LINES)]
    return [Block(text + cut, Tone.PLAIN, "Result", fold_lines=FOLD_LINES, clips=True)] if text else []


def _end_blocks(recorded: Recorded) -> list[Block]:
    event = recorded.event
    match event:
        case TaskCommitted():
            title = inert_line(event.message.strip().split("\n")[0])
            return [Block(f"{event.commit[:10]} on {inert_line(event.branch, 100)}: {title}", Tone.GOOD, "Committed")]
        case TaskMerged():
            into = inert_line(event.outcome.into, 100)
            return [Block(f"{into} is at {event.outcome.commit[:10]} ({event.outcome.how})", Tone.GOOD, "Merged")]
        case TaskRolledBack():
            return [Block(f"to {event.to[:10]}: {inert_line(event.reason)}", Tone.WARN, "Rolled back", Tone.WARN)]
        case TaskFinished():
            good = event.status is TaskStatus.DONE
            said = f"{event.task} is {event.status.replace('_', ' ')}: {inert_line(event.reason)}"
            return [Block(said, Tone.GOOD if good else Tone.BAD, "✓" if good else "✗", space_before=True)]
        case _:
            return []
