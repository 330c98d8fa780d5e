"""Proposals at the gate: made from an answer or by the workbench, replaced by an edit, and decided."""

from asyncio import to_thread

from msgspec.structs import replace

from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import JudgeTouched, PartialRewrite, PatchError, UsageError, VainChange, error_text
from agent_workbench.core.events import (
    ActionDecided,
    ActionProposed,
    ActionRejected,
    Author,
    ProposalReplaced,
    ReflexionNoted,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.patch.values import HunkFate, patch_hash, selectable_ids
from agent_workbench.core.proposal_kinds import CheckProposal, MergeProposal
from agent_workbench.core.proposals import (
    CHECKS,
    COMMIT,
    END_UNCHANGED,
    KINDS,
    MERGE,
    HunkVerdict,
    Proposal,
    Verdict,
    hunk_location,
    with_patch,
)
from agent_workbench.core.proposed_action import FileChanges, ProposalT, ToolCall
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import Phase, TaskRun
from agent_workbench.core.tools.arguments import ArgumentFault, Arguments, read_arguments
from agent_workbench.core.tools.spec import FINISH, NOTE, REWRITE, ToolSpec, by_name
from agent_workbench.engine.answer.repeated_calls import loop_warning
from agent_workbench.engine.answer.step_protocol import StepFault, grammar_ignored, read_step
from agent_workbench.engine.policy import ruling
from agent_workbench.engine.prompt.attempts import Fate, left_before, lost_before
from agent_workbench.engine.runtime.code_diagnostics import prepare_diagnostics
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool import REFUSALS, Tool
from agent_workbench.engine.runtime.tool_context import ToolContext
from agent_workbench.engine.tools.finish_tool import why_rejected
from agent_workbench.engine.tools.merge import method_arguments

REFLEXION_PREFIX = "Reflexion:"
PARTIAL_AGAIN = 3
"""Times that a rewriting in part is asked for again before the model is told: it may want to remove the rest."""


async def read_answer(session: SessionContext) -> None:
    """Record the model's answer as a proposal, a rejected step or a reflexion."""
    run = session.run
    answer = run.answer
    if answer is None:
        return
    if run.phase is Phase.REFLECTING:
        text = answer.text.strip().removeprefix(REFLEXION_PREFIX).strip()
        await session.record(ReflexionNoted(answer.step, text))
        return
    call = read_step(answer.text, by_name(run.specs))
    if ignored := grammar_ignored(session.state, answer, call):
        await session.record(ignored)
    if isinstance(call, StepFault):
        await session.record(ActionRejected(answer.step, call.reason))
        return
    if call.tool.name == FINISH and (reason := why_rejected(run)):
        await session.record(ActionRejected(answer.step, f"{call.tool.name}: {reason}", empty_finish=True))
        return
    if _runs_anew(call.tool) and (loop := loop_warning(run)):
        await session.record(ActionRejected(answer.step, f"{call.tool.name}: {loop}"))
        return
    try:
        tool = await session.tools.tool(call.tool.name)
        await propose(session, tool, call.arguments, call.text, call.mended)
    except REFUSALS as refusal:
        judges = refusal.paths if isinstance(refusal, JudgeTouched) else ()
        reason = f"{call.tool.name}: {error_text(refusal)}"
        # Told, a small model writes the same again: it stands in its prompt.
        vain = isinstance(refusal, VainChange) or (isinstance(refusal, PartialRewrite) and _may_be_chance(run, reason))
        again = vain and call.tool.name == REWRITE and run.tries_afresh
        await session.record(ActionRejected(answer.step, reason, judges=judges, again=again))


def _may_be_chance(run: TaskRun, reason: str) -> bool:
    """Return True if a rewriting in part is asked for again without a word: it is not what the model means to do.

    Where all passes, it wants more than the checks, and asked again it would end in the commit.
    """
    same = sum(isinstance(each.event, ActionRejected) and each.event.reason == reason for each in run.history)
    return same < PARTIAL_AGAIN and not run.shown_to_pass


def _runs_anew(spec: ToolSpec) -> bool:
    """Return True if each call of the tool has an effect. The result of a tool that only reads shows a repetition."""
    return spec.name == NOTE or KINDS[spec.permission].runs_commands


async def propose(
    session: SessionContext, tool: Tool, arguments: Arguments, text: str, mended: tuple[str, ...] = ()
) -> None:
    """Propose a call. Raises the errors of its draft, and `VainChange` for a diff that was already in vain.

    `mended` are the repairs that reading the call took.
    """
    draft = await tool.draft(await session.tool_context(), arguments, text)
    draft = _changed(draft, repaired=(*mended, *draft.repaired))
    if tool.spec.permission is Permission.DIFF:
        await _check_new(session, tool, draft)
    await propose_draft(session, tool, draft)


async def _check_new(session: SessionContext, tool: Tool, draft: Proposal) -> None:
    """Raise `PatchError` for a diff that the user left out, rejected or undid before, or that failed its checks."""
    run = session.run
    left = await to_thread(left_before, run.history, draft.patch, run.tree)
    if left is not None:
        location = hunk_location(left.hunk)
        raise PatchError(
            f"the user left this out of the diff of step {left.step}, at {location}: {left.hunk.reason}",
            advice="change something else, or do it another way",
        )
    lost = await to_thread(lost_before, run.history, draft.diff, run.tree)
    if lost is not None and lost.fate is Fate.UNDONE and ruling(session.state, _proposal(session, tool, draft)) is None:
        return  # The user decides about it again.
    if lost is not None:
        raise VainChange(
            f"this is the diff of step {lost.proposal.step} again, on the same files: {lost.why}",
            advice="it would end the same way; change something else",
        )


async def propose_draft(session: SessionContext, tool: Tool, draft: Proposal) -> None:
    """Record a draft as a proposal; reject it at once if it contains a secret."""
    await session.record(ActionProposed(_proposal(session, tool, draft)))
    if tool.spec.permission is Permission.DIFF:
        prepare_diagnostics(session, draft.paths)
    await refuse_if_redacted(session, draft)


async def refuse_if_redacted(session: SessionContext, draft: Proposal) -> None:
    """Reject the new proposal if a secret was redacted in it: only the text in the journal may be carried out."""
    proposal = session.state.waiting
    if proposal is None or proposal.kind is Permission.SUMMARY:  # The text of a summary is not carried out.
        return
    if (proposal.diff, proposal.texts) != (draft.diff, draft.texts):
        await decide(
            session, proposal, Verdict.REJECT, "policy:secrets", "it holds the value of a secret environment variable"
        )


async def propose_checks(session: SessionContext, purpose: CheckPurpose) -> None:
    """Propose the checks of the task."""
    draft = CheckProposal(text="", commands=session.run.checks, purpose=purpose)
    await session.record(ActionProposed(_proposal(session, await session.tools.tool(CHECKS), draft)))


async def propose_commit(session: SessionContext) -> None:
    """Propose the commit of the task."""
    await propose(session, await session.tools.tool(COMMIT), Arguments({}), "")


async def propose_end(session: SessionContext) -> None:
    """Propose to end a task without changes."""
    await propose(session, await session.tools.tool(END_UNCHANGED), Arguments({}), "")


async def propose_merge(session: SessionContext) -> None:
    """Propose the merge of the task's commit."""
    await propose(session, await session.tools.tool(MERGE), Arguments({}), "")


def _proposal(
    session: SessionContext,
    tool: Tool,
    draft: Proposal,
    replaced: ProposalId | None = None,
    *,
    edited: bool = False,
    hunks: tuple[HunkVerdict, ...] = (),
) -> Proposal:
    spec, state = tool.spec, session.state
    id = replaced or ProposalId(f"P-{state.seq + 1}")
    made = _changed(draft, id=id, tool=spec.name, step=state.step, edited=edited)
    if isinstance(made, FileChanges):
        return _changed(made, hunks=hunks)
    if isinstance(made, ToolCall) and not spec.builtin:
        return replace(made, source=spec.source, spec=spec.digest, hints=spec.hints)
    return made


def _changed(proposal: ProposalT, **fields: object) -> ProposalT:
    """Return the proposal with other fields than its diff: if that is parsed already, it is not parsed again."""
    made = replace(proposal, **fields)
    return with_patch(made, proposal.patch) if "patch" in proposal.__dict__ else made


async def replace_proposal(
    session: SessionContext, proposal: Proposal, text: str, reason: str, by: Author, context: ToolContext | None = None
) -> None:
    """Replace a proposal by a new draft from `text`; if the draft raises, the old proposal still waits.

    The draft is made in the context of the task, or in that of a chat.
    """
    tool = await session.tools.tool(proposal.tool)
    arguments = (
        method_arguments(_kept_method(proposal, text))
        if isinstance(proposal, MergeProposal)
        else _edited_arguments(proposal, tool.spec, text)
    )
    draft = await tool.draft(context or await session.tool_context(), arguments, text)
    hunks = () if by is Author.USER else proposal.hunks
    if hunks:  # The selection of the user stays a selection from the model's diff.
        draft = _changed(draft, text=proposal.text)
    edited = proposal.edited or by is Author.USER
    made = _proposal(session, tool, draft, proposal.id, edited=edited, hunks=hunks)
    await session.record(ProposalReplaced(made, reason, by))
    await refuse_if_redacted(session, draft)


async def choose_method(session: SessionContext, proposal: Proposal, method: MergeMethod) -> None:
    """Replace the proposal of a merge by one that merges by `method`, with that method's own message."""
    tool = await session.tools.tool(proposal.tool)
    draft = await tool.draft(await session.tool_context(), method_arguments(method), "")
    made = _proposal(session, tool, draft, proposal.id)
    await session.record(ProposalReplaced(made, f"merge by {method}", Author.USER))


def _kept_method(proposal: MergeProposal, text: str) -> MergeMethod | None:
    """Return the method for a new draft of a merge: the same one, unless it was the default, which may have changed."""
    is_default = not text and proposal.method in proposal.methods[:1]
    return None if is_default else proposal.method


def _edited_arguments(proposal: Proposal, spec: ToolSpec, text: str) -> Arguments:
    """Return the arguments in the text of an edited proposal, none if it is a diff, a command, a message, an answer."""
    if proposal.kind is Permission.CHECK:
        raise UsageError("checks cannot be edited", advice="reject them, or change the commands in the plan")
    if proposal.calls and not proposal.is_question:
        raise UsageError("the call of a tool cannot be edited", advice="reject it with a reason")
    if proposal.is_question or not proposal.has_arguments:
        return Arguments({})
    try:
        return read_arguments(text, spec)
    except ArgumentFault as fault:
        raise UsageError(f"{spec.name}: {fault}") from fault


async def decide(
    session: SessionContext,
    proposal: Proposal,
    verdict: Verdict,
    by: str,
    reason: str = "",
    hunks: tuple[HunkVerdict, ...] = (),
    decision: InboxDecision | None = None,
) -> None:
    """Record the decision about a proposal, bound to its shown content.

    `hunks` are the decisions about its hunks if they differ. `decision` is the one of the inbox, if it came from there.
    """
    approved = verdict is Verdict.APPROVE and proposal.by_hunk
    await session.record(
        ActionDecided(
            proposal_id=proposal.id,
            verdict=verdict,
            by=by,
            reason=reason,
            resulting_patch_sha=patch_hash(proposal.diff) if approved else "",
            hunks=hunks or await to_thread(_hunk_verdicts, proposal, verdict, reason),
            preimages=proposal.preimages if approved else (),
            via=decision.via if decision is not None else "",
            signed=decision.signed if decision is not None else None,
        )
    )


def _hunk_verdicts(proposal: Proposal, verdict: Verdict, reason: str) -> tuple[HunkVerdict, ...]:
    if not proposal.by_hunk or verdict not in {Verdict.APPROVE, Verdict.REJECT}:
        return ()
    if verdict is Verdict.APPROVE and proposal.hunks:
        return proposal.hunks
    try:
        patch = proposal.patch
    except PatchError:  # A journal of 0.1 may contain a change that is not text; carrying it out is refused.
        return ()
    taken = HunkFate.EDITED if proposal.edited else HunkFate.TAKEN
    fate, why = (taken, "") if verdict is Verdict.APPROVE else (HunkFate.LEFT, reason)
    return tuple(HunkVerdict(each, fate, why) for each in selectable_ids(patch))
