"""Dispatch of user intents: each is checked against the current state, carried out or refused with the reason."""

import asyncio

from agent_workbench.core.events import (
    AbortAsked,
    Author,
    PauseChanged,
    RetryAsked,
)
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import InboxDecision
from agent_workbench.core.intents import (
    AbortTask,
    AddTask,
    ApproveProposal,
    ArrangePlan,
    AskConsultant,
    BlockTask,
    ChangeMode,
    ChangeRule,
    ChooseMergeMethod,
    ChooseSkill,
    CompactContext,
    CompleteCode,
    DraftTask,
    DropChunk,
    EditNote,
    EditPlan,
    EditProposal,
    EditScratchpad,
    ExpandPrompt,
    FindCode,
    FindNotes,
    Intent,
    ListModels,
    ListPastActions,
    ListPrompts,
    ListSkills,
    LoadModel,
    MergeTask,
    MoveTask,
    OfferNotes,
    OpenFile,
    OpenPlan,
    PauseTask,
    PinChunk,
    PreviewPrompt,
    ProposePlan,
    RejectProposal,
    RetryTrouble,
    SayToModel,
    SkipProposal,
    StopAction,
    StopAnswer,
    StopConsultation,
    SwitchModel,
    UndoStep,
    UnloadModel,
)
from agent_workbench.core.outcomes import (
    Accepted,
    CodeCompleted,
    ModelsListed,
    Outcome,
    PastActionsFound,
    Refused,
    SkillsListed,
    TaskDrafted,
)
from agent_workbench.core.proposal_kinds import MergeProposal, SummaryProposal
from agent_workbench.core.proposals import OFFER_NOTES, Proposal, Verdict, shown_sha
from agent_workbench.core.repo.retrieval import Completion
from agent_workbench.core.settings import Permission
from agent_workbench.core.state.session_state import ENDED, Phase, SessionState
from agent_workbench.core.state.work import Chat, Planning
from agent_workbench.core.text.mentions import matching_paths
from agent_workbench.engine.chat.chat_context import chat_context
from agent_workbench.engine.chat.chat_intents import STOPPED, stop_chat
from agent_workbench.engine.mode_change import change_mode, change_rules
from agent_workbench.engine.note_offers import edit_notes
from agent_workbench.engine.partial_approval import take_part
from agent_workbench.engine.planning.plan_proposal import edit_plan
from agent_workbench.engine.prompt.scratchpad import notes_changed
from agent_workbench.engine.proposals import choose_method, decide, propose_merge, replace_proposal
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.session.consult_intents import ask_consultant, find_notes, handle_notes
from agent_workbench.engine.session.context_intents import NO_TASK, handle_context, handle_model, preview_prompt
from agent_workbench.engine.session.plan_intents import handle_plan
from agent_workbench.engine.task.code_lookup import find_code, open_file
from agent_workbench.engine.task.skill_choice import takable_skills
from agent_workbench.engine.task.task_draft import draft_task, expand_words, list_prompts
from agent_workbench.engine.task.undo import ask_undo

GateIntent = ApproveProposal | RejectProposal | SkipProposal | EditProposal | ChooseMergeMethod
Question = (
    ListPastActions
    | ListSkills
    | ListPrompts
    | ExpandPrompt
    | OpenFile
    | FindCode
    | FindNotes
    | CompleteCode
    | DraftTask
    | PreviewPrompt
    | ListModels
)
Lengthy = AskConsultant | LoadModel | UnloadModel
"""Intents that take long and are carried out beside the session."""

MOST_PATHS = 8
MOST_SYMBOLS = 8
LEAST_CHARS = 2
"""Characters that a symbol is completed from."""

TOO_LATE = "it had ended before it was stopped"


async def carry_out(session: SessionContext, intent: Intent) -> Outcome:
    """Carry an intent out and return its outcome; raise what carrying it out raises."""
    match intent:
        case ApproveProposal() | RejectProposal() | SkipProposal() | EditProposal() | ChooseMergeMethod():
            return await answer_proposal(session, intent)
        case OfferNotes() | EditNote():
            return await handle_notes(session, intent)
        case MergeTask():
            return await _merge(session, intent.task)
        case AbortTask():
            return await _abort(session)
        case StopAnswer() | StopAction():
            return await handle_stop(session, intent)
        case AskConsultant():
            return await ask_consultant(session, intent)
        case LoadModel() | UnloadModel() | SwitchModel():
            return await handle_model(session, intent)
        case StopConsultation():
            await session.consultation.stop()
            return Accepted()
        case UndoStep():
            return await ask_undo(session, intent.proposal)
        case PauseTask():
            return await _pause(session, paused=intent.paused)
        case RetryTrouble() if session.state.trouble is not None:
            await session.record(RetryAsked())
            return Accepted()
        case ChangeRule():
            return await change_rules(session, intent)
        case ChangeMode():
            return await change_mode(session, intent.mode, intent.shown_sha)
        case EditScratchpad():
            return await _edit_scratchpad(session, intent)
        case OpenPlan() | EditPlan() | AddTask() | MoveTask() | BlockTask() | ProposePlan() | ArrangePlan():
            return await handle_plan(session, intent)
        case SayToModel() | PinChunk() | DropChunk() | ChooseSkill() | CompactContext():
            return await handle_context(session, intent)
        case _:
            return Refused("that does not fit what is going on now")


def answerable(state: SessionState) -> Proposal | None:
    """Return the proposal that can be answered now; none can while a diff is taken back."""
    run = state.run
    return None if run is not None and run.undoing is not None else state.waiting


async def answer_proposal(
    session: SessionContext, intent: GateIntent, decision: InboxDecision | None = None
) -> Outcome:
    """Decide or replace the waiting proposal; `decision` is the one of the inbox that the answer came with, if any.

    It says who decides; else that is the person of the session.
    """
    waiting = answerable(session.state)
    by = session.person if decision is None else decision.by
    if waiting is None or waiting.id != intent.proposal:
        return Refused("that proposal no longer waits, so your answer was not recorded; look at what waits now")
    match intent:
        case ApproveProposal() if intent.shown_sha != shown_sha(waiting):
            return Refused("the proposal changed after it was shown; look again")
        case ApproveProposal() if waiting.plan is not None and not waiting.plan.taken:
            return Refused("no task of the plan is taken: take one, or skip the plan")
        case ApproveProposal() if waiting.has_gaps:
            return Refused("a value is missing: edit the answer and replace each null, or reject the question")
        case ApproveProposal() if intent.left:
            return await take_part(session, waiting, intent, decision)
        case ApproveProposal():
            await decide(session, waiting, Verdict.APPROVE, by, decision=decision)
        case RejectProposal() | SkipProposal() if _is_needed(session, waiting, intent):
            return Refused("there is no room without a summary: approve this one, edit it, or abort the task")
        case RejectProposal():
            await decide(session, waiting, Verdict.REJECT, by, intent.reason, decision=decision)
        case SkipProposal():
            await decide(session, waiting, Verdict.SKIP, by, decision=decision)
        case EditProposal() if waiting.plan is not None:
            await edit_plan(session, waiting, intent.text)
        case EditProposal() if waiting.tool == OFFER_NOTES:
            await edit_notes(session, waiting, intent.text)
        case EditProposal():
            context = await chat_context(session) if isinstance(session.state.main, Chat) else None
            await replace_proposal(session, waiting, intent.text, "edited", Author.USER, context)
        case ChooseMergeMethod() if not isinstance(waiting, MergeProposal) or intent.method not in waiting.methods:
            return Refused(f"this cannot be merged by {intent.method}")
        case ChooseMergeMethod():
            await choose_method(session, waiting, intent.method)
    return Accepted()


def _is_needed(session: SessionContext, waiting: Proposal, intent: RejectProposal | SkipProposal) -> bool:
    """Return True if the task cannot continue without the pending summary, which the workbench wrote itself."""
    if not isinstance(waiting, SummaryProposal) or not waiting.fallback:
        return False
    return not (session.run.compaction_asked and isinstance(intent, SkipProposal))


async def look_up(session: SessionContext, question: Question) -> Outcome:
    """Return the answer to a question that takes time; raise `WorkbenchError`."""
    match question:
        case ListPastActions():
            return PastActionsFound(question.kind, await session.ports.rules.past(question.kind))
        case ListSkills():
            return SkillsListed(await takable_skills(session.ports.skills))
        case ListPrompts():
            return await list_prompts(session.ports.prompts)
        case ExpandPrompt():
            return await expand_words(session.ports.prompts, question.words, in_chat=session.state.in_chat)
        case OpenFile():
            return await open_file(session, question.path, question.line)
        case ListModels():
            return ModelsListed(await session.ports.endpoints.servers())
        case PreviewPrompt():
            return await preview_prompt(session)
        case FindCode():
            run = session.state.run
            if run is None or run.phase in ENDED:
                return Refused(NO_TASK)
            return await find_code(session, question.asked.strip())
        case FindNotes():
            return await find_notes(session, question)
        case CompleteCode():
            return await complete_code(session, question.prefix)
        case DraftTask():
            return await _draft(session, question)


async def _draft(session: SessionContext, asked: DraftTask) -> Outcome:
    sources = await session.sources()
    files = frozenset(await session.file_names.of(sources))
    return TaskDrafted(await draft_task(session.ports, session.settings, sources, files, asked.words, seen=asked.seen))


async def _merge(session: SessionContext, task: TaskId) -> Outcome:
    run = session.state.run
    over = run is not None and run.phase is Phase.OVER and run.commit is not None and run.merged is None
    busy = answerable(session.state) is not None or session.state.open_planning is not None
    if run is None or run.task != task or not over or busy:
        return Refused(f"nothing to merge of {task} here; try `agent merge {task}`")
    await propose_merge(session)
    return Accepted()


async def _abort(session: SessionContext) -> Outcome:
    run, work, waiting = session.state.run, session.state.work, answerable(session.state)
    if session.state.in_chat:
        return await _end_turn(session, waiting)
    if isinstance(work, Planning):
        await _give_up_planning(session, work, waiting)
    elif waiting is not None and (waiting.kind is Permission.MERGE or waiting.tool == OFFER_NOTES):
        await decide(session, waiting, Verdict.SKIP, session.person)
    elif run is not None and run.merging:
        return Refused(f"{run.task} is being merged; that is brought to its end")
    elif run is None or run.phase is Phase.OVER:
        return Refused("no task is being worked on")
    elif run.phase is Phase.CLOSING:
        return Refused(f"{run.task} is over, it is only being written down")
    elif waiting is not None:
        await decide(session, waiting, Verdict.ABORT, session.person, "aborted by the user")
    else:
        await session.record(AbortAsked("aborted by the user"))
    return Accepted()


async def _end_turn(session: SessionContext, waiting: Proposal | None) -> Outcome:
    """Leave the newest message of a chat without a reply."""
    if waiting is not None:
        await decide(session, waiting, Verdict.ABORT, session.person, STOPPED)
    elif session.state.at_work:
        await session.record(AbortAsked(STOPPED))
    else:
        return Refused("nothing is being answered")
    return Accepted()


async def _give_up_planning(session: SessionContext, planning: Planning, waiting: Proposal | None) -> None:
    """Put the proposed plan aside, or stop before there is one; a task that waits for its check is not started."""
    if waiting is not None:
        await decide(session, waiting, Verdict.ABORT if planning.check_for else Verdict.SKIP, session.person)
    else:
        await session.record(AbortAsked("planning stopped by the user"))


async def _pause(session: SessionContext, *, paused: bool) -> Outcome:
    run = session.state.run
    if run is None or run.phase in ENDED:
        return Refused("no task is being worked on")
    if run.paused is paused:
        return Refused(f"{run.task} {'is paused already' if paused else 'is not paused'}")
    await session.record(PauseChanged(paused))
    return Accepted()


async def _edit_scratchpad(session: SessionContext, intent: EditScratchpad) -> Outcome:
    fork = session.state.fork_of(intent.task)
    text = await session.ports.memory.write_scratchpad(intent.task, intent.before, intent.text, fork)
    if text != session.state.scratchpad(intent.task):
        await session.record(notes_changed(session.settings, intent.task, text, Author.USER))
    return Accepted()


async def complete_code(session: SessionContext, prefix: str) -> CodeCompleted:
    """Return the files and symbols that fit what is typed, from what is indexed so far; raise `WorkbenchError`."""
    sources = await session.sources()
    paths = await session.file_names.of(sources)
    if session.state.unfinished:
        context = await session.tool_context()
        paths = tuple(path for path in paths if context.may_read(path))
    fitting = await asyncio.to_thread(matching_paths, paths, prefix, MOST_PATHS)
    if len(prefix) < LEAST_CHARS or "/" in prefix:
        return CodeCompleted(prefix, tuple(map(Completion, fitting)))
    retriever = session.ports.retriever
    known = set(paths)
    symbols = await retriever.symbols(sources, prefix, MOST_SYMBOLS)
    status = retriever.status(sources)
    remark = "" if status.complete and status.files else "symbols are being indexed"
    items = (*map(Completion, fitting), *(each for each in symbols if each.place.rpartition(":")[0] in known))
    return CodeCompleted(prefix, items, remark)


async def handle_stop(session: SessionContext, intent: StopAnswer | StopAction) -> Outcome:
    """Pause the task, and end its running action if that is the one to stop. An answer was cut before this.

    An action that began meanwhile goes on, because the user has not seen it. While a proposal waits, nothing runs.
    """
    run, work, main = session.state.run, session.state.work, session.state.main
    if isinstance(main, Chat):
        return await stop_chat(session, main, intent)
    if session.state.waiting is not None:
        return Refused(f"{TOO_LATE}; look at what waits now")
    if isinstance(work, Planning) and work.gate.begun is not None:
        return Refused("the plan is being written, which is brought to its end")
    if isinstance(work, Planning):  # it can be asked for again
        await session.record(AbortAsked("planning stopped by the user"))
        return Accepted()
    if run is None or run.phase in ENDED:
        return Accepted()  # nothing runs any more
    if not run.paused:
        await session.record(PauseChanged(paused=True))
    if isinstance(intent, StopAnswer):
        return Accepted()
    begun = session.run.gate.begun
    if begun is None or begun.id != intent.proposal:
        return Refused(f"{TOO_LATE}; the task pauses before the next request to the model")
    if not begun.stoppable:
        return Refused(f"a {begun.kind} is brought to its end; the task pauses after it")
    session.stoppable.stop(intent.proposal)
    return Accepted()
