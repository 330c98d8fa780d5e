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
from agent_workbench.core.plan_intents import BlockTask, EditPlan, MoveTask, OpenPlan
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.settings import GateKind
from agent_workbench.core.state import ENDED, Phase
from agent_workbench.engine.context_intents import handle_context
from agent_workbench.engine.desk import Desk
from agent_workbench.engine.files_shown import open_file
from agent_workbench.engine.gating import decide, propose_merge, replace_proposal
from agent_workbench.engine.keeping import change_rules, look_back
from agent_workbench.engine.notes import notes_changed
from agent_workbench.engine.plan_intents import handle_plan
from agent_workbench.engine.taking import take_part
from agent_workbench.engine.undoing import ask_undo

GateIntent = ApproveProposal | RejectProposal | SkipProposal | EditProposal


async def handle(desk: Desk, intent: Intent) -> None:
    """Do what `intent` asks for, or say why it does not fit; raise what doing it raises."""
    match intent:
        case ApproveProposal() | RejectProposal() | SkipProposal() | EditProposal():
            await _answer_gate(desk, intent)
        case MergeTask():
            await _merge(desk, intent.task)
        case AbortTask():
            await _abort(desk)
        case UndoStep():
            await ask_undo(desk, intent.proposal)
        case PauseTask():
            await _pause(desk, paused=intent.paused)
        case RetryTrouble() if desk.state.trouble is not None:
            await desk.record(RetryAsked())
        case AllowAlways():
            await change_rules(desk, intent)
        case LookBack():
            await desk.looking.start(look_back(desk, intent.kind))
        case EditScratchpad():
            await _edit_scratchpad(desk, intent)
        case OpenPlan() | EditPlan() | MoveTask() | BlockTask():
            await handle_plan(desk, intent)
        case OpenFile():
            await open_file(desk, intent.path, intent.line)
        case SayToModel() | PinChunk() | DropChunk() | FindCode() | CompactContext():
            await handle_context(desk, intent)
        case _:
            desk.board.notify("that does not fit what is going on now")


async def _answer_gate(desk: Desk, intent: GateIntent) -> None:
    waiting = _waiting(desk)
    if waiting is None or waiting.id != intent.proposal:
        desk.board.notify("that proposal is not waiting any more")
        return
    match intent:
        case ApproveProposal() if intent.shown_sha != shown_sha(waiting):
            desk.board.notify("the proposal changed after it was shown; look again")
        case ApproveProposal() if intent.left:
            await take_part(desk, waiting, intent)
        case ApproveProposal():
            await decide(desk, waiting, Verdict.APPROVE, "user")
        case RejectProposal() | SkipProposal() if _is_needed(desk, waiting, intent):
            desk.board.notify("there is no room without a summary: approve this one, edit it, or abort the task")
        case RejectProposal():
            await decide(desk, waiting, Verdict.REJECT, "user", intent.reason)
        case SkipProposal():
            await decide(desk, waiting, Verdict.SKIP, "user")
        case EditProposal():
            await replace_proposal(desk, waiting, intent.text, "edited", Author.USER)


async def _merge(desk: Desk, task: TaskId) -> None:
    run = desk.state.run
    over = run is not None and run.phase is Phase.OVER and run.commit is not None and run.merged is None
    if run is None or run.task != task or not over or _waiting(desk) is not None:
        desk.board.notify(f"nothing to merge of {task} here; try `agent merge {task}`")
        return
    await propose_merge(desk)


async def _abort(desk: Desk) -> None:
    run, waiting = desk.state.run, _waiting(desk)
    if waiting is not None and waiting.kind is GateKind.MERGE:
        await decide(desk, waiting, Verdict.SKIP, "user")
    elif run is not None and run.merging:
        desk.board.notify(f"{run.task} is being merged; that is brought to its end")
    elif run is None or run.phase is Phase.OVER:
        desk.board.notify("no task is being worked on")
    elif run.phase is Phase.CLOSING:
        desk.board.notify(f"{run.task} is over, it is only being written down")
    elif waiting is not None:
        await decide(desk, waiting, Verdict.ABORT, "user", "aborted by the user")
    else:
        await desk.record(AbortAsked("aborted by the user"))


async def _pause(desk: Desk, *, paused: bool) -> None:
    run = desk.state.run
    if run is None or run.phase in ENDED:
        desk.board.notify("no task is being worked on")
    elif run.paused is paused:
        desk.board.notify(f"{run.task} {'is paused already' if paused else 'is not paused'}")
    else:
        await desk.record(PauseChanged(paused))


async def _edit_scratchpad(desk: Desk, intent: EditScratchpad) -> None:
    fork = desk.state.fork_of(intent.task)
    text = await desk.ports.memory.write_scratchpad(intent.task, intent.before, intent.text, fork)
    if text != desk.state.scratchpad(intent.task):
        await desk.record(notes_changed(desk.settings, intent.task, text, Author.USER))


def _is_needed(desk: Desk, waiting: Proposal, intent: RejectProposal | SkipProposal) -> bool:
    """Return whether it cannot be done without what waits: nobody would write another summary than our own."""
    optional = desk.run.compaction_asked and isinstance(intent, SkipProposal)
    return waiting.kind is GateKind.SUMMARY and waiting.fallback and not optional


def _waiting(desk: Desk) -> Proposal | None:
    """Return what can be answered; what waits while a diff is taken back cannot."""
    run = desk.state.run
    return run.waiting if run is not None and run.undoing is None else None
