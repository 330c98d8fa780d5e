"""What comes of an intent: each is checked against the state as it is now, and answered by an event or a notice."""

from agent_workbench.core.events import (
    AbortAsked,
    Author,
    PauseChanged,
    RetryAsked,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.intents import (
    AbortTask,
    AllowAlways,
    ApproveProposal,
    CompactContext,
    DropChunk,
    EditProposal,
    EditScratchpad,
    FindCode,
    Intent,
    LookBack,
    MergeTask,
    OpenFile,
    PauseTask,
    PinChunk,
    RejectProposal,
    RetryTrouble,
    SayToModel,
    SkipProposal,
    UndoStep,
)
from agent_workbench.core.intents.plan import BlockTask, EditPlan, MoveTask, OpenPlan
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import ENDED, Phase
from agent_workbench.engine.approval.partial_approval import take_part
from agent_workbench.engine.approval.proposals import decide, propose_merge, replace_proposal
from agent_workbench.engine.approval.rule_store import change_rules, show_past_actions
from agent_workbench.engine.prompt.scratchpad import notes_changed
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.context_intents import handle_context
from agent_workbench.engine.session.opened_file import open_file
from agent_workbench.engine.session.plan_intents import handle_plan
from agent_workbench.engine.task.undo import ask_undo

GateIntent = ApproveProposal | RejectProposal | SkipProposal | EditProposal


async def handle(session: SessionContext, intent: Intent) -> None:
    """Do what `intent` asks for, or say why it does not fit; raise what doing it raises."""
    match intent:
        case ApproveProposal() | RejectProposal() | SkipProposal() | EditProposal():
            await _answer_gate(session, intent)
        case MergeTask():
            await _merge(session, intent.task)
        case AbortTask():
            await _abort(session)
        case UndoStep():
            await ask_undo(session, intent.proposal)
        case PauseTask():
            await _pause(session, paused=intent.paused)
        case RetryTrouble() if session.state.trouble is not None:
            await session.record(RetryAsked())
        case AllowAlways():
            await change_rules(session, intent)
        case LookBack():
            await session.looking.start(show_past_actions(session, intent.kind))
        case EditScratchpad():
            await _edit_scratchpad(session, intent)
        case OpenPlan() | EditPlan() | MoveTask() | BlockTask():
            await handle_plan(session, intent)
        case OpenFile():
            await open_file(session, intent.path, intent.line)
        case SayToModel() | PinChunk() | DropChunk() | FindCode() | CompactContext():
            await handle_context(session, intent)
        case _:
            session.publisher.notify("that does not fit what is going on now")


async def _answer_gate(session: SessionContext, intent: GateIntent) -> None:
    waiting = _waiting(session)
    if waiting is None or waiting.id != intent.proposal:
        session.publisher.notify("that proposal is not waiting any more")
        return
    match intent:
        case ApproveProposal() if intent.shown_sha != shown_sha(waiting):
            session.publisher.notify("the proposal changed after it was shown; look again")
        case ApproveProposal() if intent.left:
            await take_part(session, waiting, intent)
        case ApproveProposal():
            await decide(session, waiting, Verdict.APPROVE, "user")
        case RejectProposal() | SkipProposal() if _is_needed(session, waiting, intent):
            session.publisher.notify("there is no room without a summary: approve this one, edit it, or abort the task")
        case RejectProposal():
            await decide(session, waiting, Verdict.REJECT, "user", intent.reason)
        case SkipProposal():
            await decide(session, waiting, Verdict.SKIP, "user")
        case EditProposal():
            await replace_proposal(session, waiting, intent.text, "edited", Author.USER)


async def _merge(session: SessionContext, task: TaskId) -> None:
    run = session.state.run
    over = run is not None and run.phase is Phase.OVER and run.commit is not None and run.merged is None
    if run is None or run.task != task or not over or _waiting(session) is not None:
        session.publisher.notify(f"nothing to merge of {task} here; try `agent merge {task}`")
        return
    await propose_merge(session)


async def _abort(session: SessionContext) -> None:
    run, waiting = session.state.run, _waiting(session)
    if waiting is not None and waiting.kind is Permission.MERGE:
        await decide(session, waiting, Verdict.SKIP, "user")
    elif run is not None and run.merging:
        session.publisher.notify(f"{run.task} is being merged; that is brought to its end")
    elif run is None or run.phase is Phase.OVER:
        session.publisher.notify("no task is being worked on")
    elif run.phase is Phase.CLOSING:
        session.publisher.notify(f"{run.task} is over, it is only being written down")
    elif waiting is not None:
        await decide(session, waiting, Verdict.ABORT, "user", "aborted by the user")
    else:
        await session.record(AbortAsked("aborted by the user"))


async def _pause(session: SessionContext, *, paused: bool) -> None:
    run = session.state.run
    if run is None or run.phase in ENDED:
        session.publisher.notify("no task is being worked on")
    elif run.paused is paused:
        session.publisher.notify(f"{run.task} {'is paused already' if paused else 'is not paused'}")
    else:
        await session.record(PauseChanged(paused))


async def _edit_scratchpad(session: SessionContext, intent: EditScratchpad) -> None:
    fork = session.state.fork_of(intent.task)
    text = await session.ports.memory.write_scratchpad(intent.task, intent.before, intent.text, fork)
    if text != session.state.scratchpad(intent.task):
        await session.record(notes_changed(session.settings, intent.task, text, Author.USER))


def _is_needed(session: SessionContext, waiting: Proposal, intent: RejectProposal | SkipProposal) -> bool:
    """Return whether it cannot be done without what waits: nobody would write another summary than our own."""
    optional = session.run.compaction_asked and isinstance(intent, SkipProposal)
    return waiting.kind is Permission.SUMMARY and waiting.fallback and not optional


def _waiting(session: SessionContext) -> Proposal | None:
    """Return what can be answered; what waits while a diff is taken back cannot."""
    run = session.state.run
    return run.waiting if run is not None and run.undoing is None else None
