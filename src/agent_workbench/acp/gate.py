"""The gate in the editor: what waits is a question that names all of it, and the answer becomes intents."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from acp import schema as wire
from msgspec import Struct

from agent_workbench.acp.tool_calls import (
    MAX_SHOWN_CHARS,
    Content,
    both_forms,
    change_content,
    diff_content,
    kind_of,
    places_of,
    size_of,
    text_content,
    title_of,
)
from agent_workbench.core.approval_rules import RuleScope, is_wide, offered_rules, rule_words
from agent_workbench.core.intents import ApproveProposal, ChangeRule, Intent, RejectProposal, SkipProposal
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.patch.values import FileChange
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.settings import Rule
from agent_workbench.core.text.markdown import fenced_whole, literal
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.gate.gate_bar import GateAct, acts_for, view_gate

if TYPE_CHECKING:
    from agent_workbench.acp.editor import Editor
    from agent_workbench.core.ports.session_host import SessionHandle


APPROVE, ALWAYS, REJECT, EXPLAIN, SKIP, BACK = "approve", "always", "reject", "explain", "skip", "back"
MAX_RULES = 3
MAX_OPTION_CHARS = 300

NO_REASON = "the user rejected it and gave no reason"


class GateQuestion(Struct, frozen=True):
    """A question to the client about `proposal`, and the rules behind its options, by their ids."""

    proposal: Proposal
    sha: str
    call: wire.ToolCallUpdate
    options: tuple[wire.PermissionOption, ...]
    rules: dict[str, Rule]
    special: tuple[str, ...] = ()


def gate_question(
    update: SessionUpdate, proposal: Proposal, root: str, changes: Sequence[FileChange] = ()
) -> GateQuestion:
    """Return the question about the proposal that waits; `changes` are its files before and after, if they are known.

    What is too long to be shown can only be rejected or skipped.
    """
    run = update.state.run
    short = len(proposal.diff) + len(proposal.text) <= MAX_SHOWN_CHARS
    content = _content(update, proposal, root, changes) if short else []
    acts = acts_for(proposal, asked=run is not None and run.compaction_asked)
    approvable = GateAct.APPROVE in acts and short and size_of(content) <= MAX_SHOWN_CHARS
    if proposal.has_gaps:
        content.append(
            text_content("A value is missing, and an editor has no form for it: the question can be declined.")
        )
    elif not approvable:
        content = [text_content(_too_long(update))]
    special = proposal.second_look
    rules = {f"{ALWAYS}-{number}": rule for number, rule in enumerate(_rules(proposal)) if approvable and not special}
    options = (
        *((_option(APPROVE, "Approve", "allow_once"),) if approvable else ()),
        *(_option(name, _always(rule), "allow_always") for name, rule in rules.items()),
        _option(REJECT, "Reject", "reject_once"),
        _option(EXPLAIN, "Reject; my next message says why", "reject_once"),
        *((_option(SKIP, "Go on without it", "reject_once"),) if GateAct.SKIP in acts else ()),
    )
    call = wire.ToolCallUpdate(
        tool_call_id=proposal.id,
        title=title_of(proposal),
        kind=kind_of(proposal),
        status="pending",
        content=content,
        locations=places_of(proposal, root),
    )
    return GateQuestion(proposal, shown_sha(proposal), call, options, rules, special)


def special_question(asked: GateQuestion) -> GateQuestion:
    """Return the second question about special parts, which name themselves in its answers."""
    text = asked.proposal.special_words(asked.special)
    options = (
        _option(APPROVE, f"Approve; {text}", "allow_once"),
        _option(BACK, "Back", "reject_once"),
    )
    names = "\n".join(sanitize_whole(each, keep_returns=True) for each in asked.special)
    call = wire.ToolCallUpdate(
        tool_call_id=f"{asked.proposal.id}-special",
        title=sanitize_line(f"Look again: {text}", MAX_OPTION_CHARS),
        kind=kind_of(asked.proposal),
        status="pending",
        content=[text_content(f"This needs a second look:\n\n{fenced_whole(names)}"), *(asked.call.content or ())],
    )
    return GateQuestion(asked.proposal, asked.sha, call, options, {})


def _content(update: SessionUpdate, proposal: Proposal, root: str, changes: Sequence[FileChange]) -> list[Content]:
    """Return everything that the gate of the screen shows: its line, the notes, and the diff."""
    bar, view = view_gate(update), view_diff(update)
    lines = [" · ".join(filter(None, (f"{bar.word}: {bar.text}", bar.more)))]
    lines += [f"\n{block.text}" if block.space_before else block.text for block in view.notes]
    found: list[Content] = [text_content(fenced_whole("\n".join(lines)))]
    if not view.diff:
        return found
    diffs = None
    if proposal.of_files and view.diff == proposal.diff:
        diffs = change_content(changes, root) if changes else diff_content(proposal, root)
    return [*found, *both_forms(diffs, view.diff)]


def _too_long(update: SessionUpdate) -> str:
    return (
        "This is too long to be shown here in full, so it cannot be approved here. "
        f"`agent tui --session {update.state.session}` shows all of it."
    )


def _rules(proposal: Proposal) -> tuple[Rule, ...]:
    return offered_rules(proposal)[:MAX_RULES]


def _always(rule: Rule) -> str:
    words = rule_words(rule)
    shown = sanitize_line(words, MAX_OPTION_CHARS)
    return f"{shown}{' (wide)' if is_wide(rule) else ''}: always in this session"


def _option(name: str, text: str, kind: wire.PermissionOptionKind) -> wire.PermissionOption:
    return wire.PermissionOption(option_id=name, name=sanitize_line(text, MAX_OPTION_CHARS + 50), kind=kind)


class GateAnswer(StrEnum):
    """Result of a question."""

    DECIDED = "decided"
    EXPLAINED_NEXT = "explained next"
    """The next message of the user is the reason of the rejection."""
    UNDECIDED = "undecided"


class EditorGate:
    """Asks the client of a thread about the proposals of its session."""

    def __init__(self, editor: "Editor", handle: "SessionHandle", root: str) -> None:
        self._editor = editor
        self._handle = handle
        self._root = root

    async def ask(
        self, update: "SessionUpdate", proposal: "Proposal", changes: "Sequence[FileChange]" = ()
    ) -> GateAnswer:
        """Ask about the proposal that waits, until there is an answer; `changes` are its files if they are known."""
        session = update.state.session
        asked = gate_question(update, proposal, self._root, changes)
        while True:
            chosen = await self._editor.ask(session, asked.call, asked.options)
            if chosen == APPROVE and asked.special:
                again = special_question(asked)
                chosen = await self._editor.ask(session, again.call, again.options)
                if chosen == BACK:
                    continue
            return await self._carry_out(session, asked, chosen)

    async def _carry_out(self, session: str, asked: GateQuestion, chosen: str | None) -> GateAnswer:
        proposal = asked.proposal.id
        intents: tuple[Intent, ...]
        if chosen == APPROVE:
            intents = (ApproveProposal(proposal, asked.sha),)
        elif chosen is not None and chosen.startswith(ALWAYS):
            # The approval is of what was shown; the rule is for what comes after it.
            intents = (ApproveProposal(proposal, asked.sha), ChangeRule(asked.rules[chosen], RuleScope.SESSION))
        elif chosen == REJECT:
            intents = (RejectProposal(proposal, NO_REASON),)
        elif chosen == SKIP:
            intents = (SkipProposal(proposal),)
        else:
            return GateAnswer.EXPLAINED_NEXT if chosen == EXPLAIN else GateAnswer.UNDECIDED
        for intent in intents:
            outcome = await self._handle.submit(intent)
            if isinstance(outcome, Refused):
                await self._editor.say(session, f"That was not recorded: {literal(outcome.reason)}.")
                break
        return GateAnswer.DECIDED
