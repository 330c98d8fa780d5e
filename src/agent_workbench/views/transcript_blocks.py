"""Blocks of the transcript: prompts, messages and answers, also while they stream, and events of the session."""

import re

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.approval_rules import RULE_SCOPE_LABELS, mode_label, rule_words
from agent_workbench.core.events import (
    ApprovalChanged,
    Author,
    ChatReplied,
    ChatShortened,
    ChatStarted,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ConsultantAnswered,
    ConsultantAsked,
    ConsultStatus,
    ContextCompacted,
    ContextFilled,
    EndpointChosen,
    EndpointPassed,
    Event,
    GrammarIgnored,
    KnowledgeFound,
    ModeChanged,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    ModelSwitched,
    PlanAnswered,
    PlanAsked,
    PlanPrompted,
    PlanRejected,
    PlanSurveyed,
    PromptBuilt,
    RetryAsked,
    SessionEvent,
    SessionForked,
    SessionLeft,
    SessionResumed,
    SkillsChosen,
    TaskRouted,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerFigures, ChoiceReason, Purpose
from agent_workbench.core.proposals import Proposal
from agent_workbench.core.text.amounts import counted_text, dollars_text
from agent_workbench.core.text.chat_form import ChatForm, split_chat_answer, split_streamed
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone

FOLD_LINES = 6
ASIDE = frozenset({Purpose.REFLEXION, Purpose.SUMMARY})
"""Purposes whose answers become an entry of their own."""
AUTHORS = {
    Author.USER: "written by you",
    Author.MODEL: "written by the model",
    Author.WORKBENCH: "written by the workbench",
}

# Possessive, or a line of many spaces would backtrack through every split.
ACTION_LINE = re.compile(r"^Action:[ \t]*+(\S*+)[ \t]*+$", re.MULTILINE)
EDITS = frozenset({"rewrite", "write_diff"})
"""Tools whose body changes files."""
REFLEXION = "Reflexion:"

FOLDED_LINES = 8

LABEL = "Consultant"
ADVICE_FOLD_LINES = 4

PLAN_FOLD_LINES = 10


def search_blocks(event: CodeRetrieved, sought_for: str) -> list[Block]:
    """Return the blocks of a code search for the first prompt."""
    many = len(event.chunks)
    places = "\n".join(sanitize_line(chunk.place) for chunk in event.chunks)
    kept = Block("the change is kept although checks fail, and the model goes on from there", Tone.DIM, "Kept")
    said = Block(f"{counted_text(many, 'piece')} of code found for {sought_for}", Tone.DIM, "Search")
    return [*([kept] if event.failing else []), said, *([Block(places, Tone.DIM, fold_lines=2)] if places else [])]


def knowledge_blocks(event: KnowledgeFound) -> list[Block]:
    """Return the blocks of a search of the notes, with what could not be searched."""
    titles = "\n".join(sanitize_line(f"{note.path}  {note.symbol}", 200) for note in event.notes)
    many = len(event.notes)
    found = Block(f"{counted_text(many, 'note')} found for the task", Tone.DIM, "Knowledge")
    problem = Block(sanitize_line(event.problem, 400), Tone.DIM, "" if many else "Knowledge")
    named = (Block(titles, Tone.DIM, fold_lines=3),) if titles else ()
    return [*((found, *named) if many else ()), *((problem,) if event.problem else ())]


def skill_blocks(event: SkillsChosen) -> list[Block]:
    """Return the blocks of a choice of skills."""
    taken = ", ".join(f"{each.name} ({each.reason})" for each in event.skills) or "none"
    who = "your choice: " if event.by is Author.USER else ""
    said = Block(f"{who}{sanitize_line(taken)}", Tone.DIM, "Skills")
    left_out = "\n".join(f"left out: {each.name}: {each.reason}" for each in event.left_out)
    return [said, *([Block(sanitize(left_out), Tone.DIM, fold_lines=1)] if left_out else [])]


def prompt_blocks(event: PromptBuilt) -> list[Block]:
    """Return the blocks of a prompt."""
    parts = ", ".join(
        f"{sanitize_line(part.label, 60)}{f' {part.tokens:,}' if part.tokens else ''}" for part in event.parts
    )
    size = f"{event.tokens:,} tokens" if event.tokens else "tokens not counted"
    told = size + (f"; new: {parts}" if parts else "")
    return [Block(told, Tone.DIM, "Prompt", fold_lines=1)]


def answer_blocks(event: ModelAnswered, purpose: Purpose, by: str) -> list[Block]:
    """Return the blocks of a finished answer; `by` is the endpoint if it is not the usual one."""
    parts = split_answer(event.text)
    thought = thinking_blocks(event.reasoning)
    if parts.reflects or purpose in ASIDE:
        return thought
    head = f"step {event.step}{_cost(event.figures)}{f' · by {sanitize_line(by, 60)}' if by else ''}"
    blocks = [Block(head, Tone.TITLE, rule=True, space_before=True), *thought]
    if parts.thought:
        blocks.append(Block(sanitize(parts.thought), label="Thought"))
    if parts.action:
        blocks.append(Block(sanitize_line(parts.action), Tone.ACCENT, "Action"))
        fold = 4 if parts.action in EDITS else FOLD_LINES
        body = sanitize(parts.body.rstrip())
        blocks += [Block(body, Tone.DIM, fold_lines=fold, clips=True)] if body.strip() else []
    return blocks


def _cost(figures: AnswerFigures) -> str:
    told = (
        f"{figures.answer_tokens:,} tokens" if figures.answer_tokens else "",
        f"{figures.tokens_per_second:.0f}/s" if figures.answer_tokens and figures.tokens_per_second else "",
        dollars_text(figures.dollars) if figures.dollars > 0 else "",
    )
    return "  " + " · ".join(filter(None, told)) if any(told) else ""


def thinking_blocks(reasoning: str) -> list[Block]:
    """Return the reasoning before an answer as one line that unfolds."""
    text = sanitize(reasoning.strip())
    if not text:
        return []
    return [replace(thought_line(text), text=text, folded=f"{thought_line(text).text} · Enter shows them")]


def thought_line(reasoning: str) -> Block:
    """Return the length of the reasoning as one line, which is cheap while an answer streams."""
    return Block(f"thought for {len(reasoning):,} characters", Tone.DIM, "Thinking")


def interrupted_blocks(event: ModelInterrupted) -> list[Block]:
    """Return the blocks of an interrupted answer."""
    why = sanitize_line(event.what) or str(event.cause)
    said = Block(f"the answer is incomplete and is not executed: {why}", Tone.BAD, "Interrupted", Tone.BAD)
    partial = event.partial.strip()
    rest = [Block(sanitize(partial), Tone.DIM, fold_lines=3)] if partial else []
    return [said, *thinking_blocks(event.reasoning), *rest]


def message_blocks(event: UserSaid) -> list[Block]:
    """Return the blocks of a message from the user, and of the files and skills that go with it."""
    files = [sanitize_line(chunk.place) for chunk in event.files]
    brought = [*files, *(f"skill {sanitize_line(skill.name)}" for skill in event.skills)]
    with_it = [Block(f"with {', '.join(brought)}", Tone.DIM)] if brought else []
    return [Block(sanitize(event.text.strip()), Tone.STRONG, "You", Tone.ACCENT, space_before=True), *with_it]


def pin_blocks(event: ChunkPinned | ChunkDropped) -> list[Block]:
    """Return the blocks of a pinned or dropped piece of code."""
    if isinstance(event, ChunkDropped):
        return [Block(f"{sanitize_line(event.place)} is dropped; the next summary leaves it out", Tone.DIM, "Code")]
    word = "is pinned: summaries keep it" if event.pinned else "is no longer pinned"
    return [Block(f"{sanitize_line(event.chunk.place)} {word}", Tone.DIM, "Code")]


def full_context_blocks(event: ContextFilled) -> list[Block]:
    """Return the blocks of a full context."""
    size = f" of {event.context_tokens:,}" if event.context_tokens else ""
    if event.notes:
        said = f"the scratchpad has {event.prompt_tokens:,} tokens: a summary is to replace it"
        return [Block(said, Tone.WARN, "Scratchpad", Tone.WARN, space_before=True)]
    why = "as you asked" if event.by is Author.USER else "there is no room for the next answer"
    said = f"{event.prompt_tokens:,}{size} tokens: {why}; the older steps become a summary"
    return [Block(said, Tone.WARN, "Context", Tone.WARN, space_before=True)]


def compaction_blocks(event: ContextCompacted) -> list[Block]:
    """Return the blocks of a compaction."""
    pinned, found = len(event.pinned), len(event.code)
    kept = (
        "rules, task, notes and your messages",
        *((f"{counted_text(pinned, 'pinned piece')} of code",) if pinned else ()),
        *((f"{counted_text(found, 'found piece')} of code",) if found else ()),
        *(("the change so far",) if event.diff else ()),
        *(("the failing output",) if event.failing else ()),
    )
    return [
        Block("older steps became a summary", Tone.WARN, rule=True, space_before=True),
        Block(sanitize(event.summary.strip()), label="Summary", fold_lines=FOLD_LINES),
        Block(f"{AUTHORS[event.by]}; kept beside it: {', '.join(kept)}", Tone.DIM),
    ]


class AnswerParts(Struct, frozen=True):
    """An answer split into its parts; `action` is empty until it has arrived, `body` is what follows it."""

    thought: str
    action: str = ""
    body: str = ""
    reflects: bool = False


def split_answer(text: str) -> AnswerParts:
    """Return the parts of an answer, which may be unfinished or have no form at all."""
    lead = text.lstrip()
    if lead.startswith(REFLEXION):
        return AnswerParts(lead.removeprefix(REFLEXION).strip(), reflects=True)
    found = ACTION_LINE.search(text)
    if found is None:
        return AnswerParts(lead.removeprefix("Thought:").strip())
    thought = text[: found.start()].strip().removeprefix("Thought:").strip()
    return AnswerParts(thought, found[1], text[found.end() :].removeprefix("\n"))


def session_blocks(event: SessionEvent) -> list[Block]:
    """Return the blocks of a session event; none if it has nothing to show."""
    match event:
        case TroubleMet():
            said = Block(sanitize(event.what, limit_chars=4000), Tone.BAD, "Trouble", Tone.BAD, space_before=True)
            return [said, *([Block(sanitize(event.advice, limit_chars=4000), Tone.WARN)] if event.advice else [])]
        case RetryAsked():
            return [Block("retried", Tone.DIM)]
        case SessionForked():
            return [Block("a fork: its own work begins here", Tone.ACCENT, rule=True, space_before=True)]
        case SessionResumed():
            return [Block("the session was resumed", Tone.DIM, rule=True, space_before=True)]
        case SessionLeft():
            return [Block(sanitize_line(event.reason), Tone.DIM, "Session")]
        case ApprovalChanged():
            return [Block(_rule_changed(event), Tone.WARN, "Gate")]
        case ModeChanged():
            return _mode_blocks(event)
        case ModelObserved():
            return _met(event)
        case ModelSwitched():
            to = sanitize_line(event.model, 120) or "back to the model of the settings"
            return [Block(f"{to}; the prompt is read again", Tone.WARN, "Switched")]
        case EndpointChosen(choice=choice) if choice.reason is not ChoiceReason.ORDER or choice.fallback:
            asked = f"{sanitize_line(choice.endpoint, 120)}: {sanitize_line(choice.why)}"
            return [Block(asked, Tone.WARN if choice.paid else Tone.DIM, "Endpoint")]
        case EndpointPassed():
            passed = (
                f"{sanitize_line(event.endpoint, 120)} does not answer the {event.purpose}; the next endpoint is asked"
            )
            why = sanitize(event.reason, limit_chars=2000)
            return [Block(passed, Tone.WARN, "Skipped", Tone.WARN), *([Block(why, Tone.DIM)] if why else [])]
        case TaskRouted(decision=decision):
            given = f"{sanitize_line(decision.task, 120)} was given to {sanitize_line(decision.worker, 120)}"
            reasons = [Block(sanitize_line(each), Tone.DIM) for each in decision.reasons]
            return [Block(given, Tone.DIM, "Routed"), *reasons]
        case GrammarIgnored():
            ignored = f"{sanitize_line(event.endpoint, 120)} ignores the grammar: it is asked without one from now on"
            what = sanitize(event.what, limit_chars=2000)
            return [Block(ignored, Tone.WARN, "Grammar", Tone.WARN), *([Block(what, Tone.DIM)] if what else [])]
        case _:
            return []


def _rule_changed(event: ApprovalChanged) -> str:
    if event.rule is None:
        how = "approved automatically" if event.always else "for you to decide again"
        return f"from now on each {event.kind} is {how}"
    words = sanitize_line(rule_words(event.rule), 400)
    return f"rule for {RULE_SCOPE_LABELS[event.kept]}: {words}" if event.always else f"rule revoked: {words}"


def _mode_blocks(event: ModeChanged) -> list[Block]:
    head = Block(mode_label(event.mode), Tone.WARN, "Mode")
    if not event.approved:
        return [head]
    lines = "\n".join(sanitize_line(each, 300) for each in event.approved)
    before = f"the mode before approved {counted_text(len(event.approved), 'proposal')}:\n{lines}"
    return [head, Block(before, Tone.DIM, fold_lines=FOLDED_LINES)]


def _met(event: ModelObserved) -> list[Block]:
    facts = event.facts
    role = "" if event.purpose is Purpose.EXECUTOR else f"{event.purpose}: "
    told = (
        sanitize_line(facts.model, 120) or sanitize_line(facts.endpoint, 120),
        *((f"at {sanitize_line(facts.endpoint, 120)}",) if facts.model and facts.passed else ()),
        f"{facts.context_tokens:,} tokens" if facts.context_tokens else "context size unknown",
        *(("reasons before it answers",) if facts.thinks else ()),
        *(("answers are scripted",) if facts.scripted else ()),
    )
    missing = "\n".join(sanitize_line(each, 300) for each in facts.off)
    passed = "\n".join(sanitize_line(each, 300) for each in facts.passed)
    return [
        Block(role + ", ".join(told), Tone.DIM, "Model"),
        *([Block(missing, Tone.DIM, "Lacks", Tone.WARN)] if missing else []),
        *([Block(passed, Tone.DIM, "Skipped", Tone.WARN)] if passed else []),
    ]


def chat_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of a chat, none for any other event."""
    match event:
        case ChatStarted():
            tools = ", ".join(sanitize_line(spec.name, 60) for spec in event.specs) or "none"
            return [
                Block("Chat", Tone.TITLE, rule=True, space_before=True),
                Block(f"It reads, and changes nothing. Tools: {tools}", Tone.DIM),
            ]
        case ChatReplied():
            cut = [Block(event.why_cut, Tone.WARN, "Reply", Tone.WARN)] if event.cut else []
            return [_reply_block(event.text, markdown=True), *cut]
        case ChatShortened():
            said = "the context is full: the older part of the conversation is no longer sent"
            return [Block(said, Tone.WARN, "Context", Tone.WARN, space_before=True)]
        case _:
            return []


def chat_answer_blocks(event: ModelAnswered) -> list[Block]:
    """Return the blocks of an answer: its thought and call. The reply is an entry of its own."""
    return [*thinking_blocks(event.reasoning), *_form_blocks(split_chat_answer(event.text))]


def streamed_chat_blocks(streaming: Streaming) -> list[Block]:
    """Return the blocks of an answer that is being written."""
    form = split_streamed(streaming.text)
    thought = [thought_line(streaming.thought)] if streaming.thought else []
    if form.reply is None:
        return [*thought, *(_form_blocks(form) or [Block("▌", Tone.DIM, "Answer", space_before=True)])]
    return [*thought, *_form_blocks(form), _reply_block(f"{form.reply.lstrip()}▌", markdown=False)]


def _form_blocks(form: ChatForm) -> list[Block]:
    blocks = [Block(sanitize(form.thought), Tone.DIM, "Thought", space_before=True)] if form.thought else []
    if form.call:
        parts = split_answer(form.call)
        blocks.append(Block(sanitize_line(parts.action), Tone.ACCENT, "Action"))
        body = sanitize(parts.body.rstrip())
        blocks += [Block(body, Tone.DIM, fold_lines=FOLD_LINES, clips=True)] if body.strip() else []
    return blocks


def _reply_block(text: str, *, markdown: bool) -> Block:
    said = sanitize(text.strip("\n"))
    return Block(said, label="Reply", label_tone=Tone.GOOD, space_before=True, markdown=markdown)


def consult_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of a consultation, none for any other event."""
    match event:
        case ConsultantAsked():
            about = f" about {sanitize_line(', '.join(event.paths), 200)}" if event.paths else ""
            return [Block(f"{sanitize_line(event.skill, 40)} was asked{about}", Tone.ACCENT, LABEL, space_before=True)]
        case ConsultantAnswered(status=ConsultStatus.OK):
            return [Block(sanitize(event.text.strip()), Tone.PLAIN, "Advice", fold_lines=ADVICE_FOLD_LINES)]
        case ConsultantAnswered():
            reason = sanitize(event.reason, limit_chars=4000)
            return [Block(f"no answer ({event.status}): {reason}", Tone.WARN, "Advice", Tone.WARN)]
        case _:
            return []


def plan_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of the planning, none for any other event."""
    match event:
        case PlanAsked():
            what = f"a check for {event.check_for}" if event.check_for else "a plan"
            title = Block(f"{what} of the model", Tone.TITLE, rule=True, space_before=True)
            return [title, Block(sanitize(event.goal, limit_chars=4000), label="Goal")]
        case PlanSurveyed():
            return _survey_blocks(event)
        case PlanPrompted():
            return [Block(f"{event.tokens:,} tokens" if event.tokens else "tokens not counted", Tone.DIM, "Prompt")]
        case PlanAnswered():
            cut = [Block(sanitize_line(event.stopped), Tone.WARN, "Stopped", Tone.WARN)] if event.stopped else []
            said = Block(sanitize(event.text.strip()), Tone.DIM, "Answer", fold_lines=PLAN_FOLD_LINES)
            return [*thinking_blocks(event.reasoning), *([said] if event.text.strip() else []), *cut]
        case PlanRejected():
            return [Block(sanitize(event.reason, limit_chars=4000), Tone.BAD, "Invalid", Tone.BAD)]
        case _:
            return []


def proposed_plan_blocks(proposal: Proposal) -> list[Block]:
    """Return the block of a proposed plan."""
    many = len(proposal.plan.tasks) if proposal.plan is not None else 0
    return [Block(counted_text(many, "task"), Tone.ACCENT, "Plan", space_before=True)]


def streamed_plan_blocks(streaming: Streaming) -> list[Block]:
    """Return the blocks of a plan that is being written."""
    thought = thinking_blocks(streaming.thought)
    return [*thought, Block(sanitize(streaming.text) + "▌", Tone.PLAIN, "Plan", space_before=True)]


def _survey_blocks(event: PlanSurveyed) -> list[Block]:
    found = (*event.code, *event.tests)
    counts = f"{counted_text(len(event.code), 'piece')} of code, {counted_text(len(event.tests), 'piece')} of tests"
    files = counted_text(len(event.files) + event.more_files, "file")
    places = "\n".join(sanitize_line(chunk.place) for chunk in found)
    said = Block(f"{counts}, {files}", Tone.DIM, "Search")
    return [said, *([Block(places, Tone.DIM, fold_lines=2)] if places else [])]
