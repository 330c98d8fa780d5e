"""Fold of the steps' events: prompts and answers."""

from typing import assert_never

from msgspec.structs import replace

from agent_workbench.core.checks.results import fewer_fail
from agent_workbench.core.events import (
    ActionRejected,
    Author,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    CompactionAsked,
    ContextCompacted,
    ContextFilled,
    InterruptCause,
    KnowledgeFound,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    ReflexionNoted,
    SkillsChosen,
    StepEvent,
    TaskStarted,
    UserSaid,
)
from agent_workbench.core.model import Purpose
from agent_workbench.core.state.prompt_reads import reads_of, reusable_figures
from agent_workbench.core.state.session_state import Phase, SessionState, TaskRun
from agent_workbench.core.tools.specs_of_0_1 import specs_of_0_1


def fold_step(state: SessionState, event: StepEvent) -> SessionState:
    """Return the state after an event of the step group."""
    if isinstance(event, TaskStarted):
        return _started(state, event)
    run = state.run
    if run is None:
        return state
    match event:
        case CodeRetrieved():
            return replace(state, main=_kept(run) if event.failing else _retrieved(run, waits=state.reviews_context))
        case PromptBuilt():
            # A request for a summary is not part of later prompts.
            grown = 0 if event.purpose is Purpose.SUMMARY else len(event.parts)
            prompted = replace(run, step=event.step, prompt_parts=run.prompt_parts + grown)
            return replace(state, prompt=event, main=prompted)
        case ModelAnswered():
            costed = _costed(state, run, event)
            return replace(state, figures=event.figures, main=replace(costed, answer=event, answered_step=event.step))
        case ModelInterrupted():
            costed = _costed(state, run, event)
            if event.cause is InterruptCause.REPETITION and run.tries_afresh:
                costed = replace(costed, prompt_parts=0, last_figures=None)
            # The workbench replaces a summary that got too long; it is no step of the task.
            blamed = int(event.cut and run.phase is not Phase.COMPACTING)
            return replace(
                state,
                main=replace(
                    costed,
                    failures=run.failures + blamed,
                    tool_calls=run.tool_calls + blamed,
                    answered_step=event.step if blamed else run.answered_step,
                ),
            )
        case ActionRejected():
            rejected = _rejected(run, event)
            # Without a summary the notes stay as they are.
            return replace(state, main=rejected.with_notes_settled(run.notes_settled) if run.notes_full else rejected)
        case ReflexionNoted():
            return replace(
                state,
                main=replace(
                    run, answer=None, phase=Phase.STEPPING, reflexions=run.reflexions + 1, reflected=run.failures
                ),
            )
        case UserSaid() | KnowledgeFound():
            return state
        case SkillsChosen() | ChunkPinned() | ChunkDropped() | CompactionAsked():
            return replace(state, main=_with_context(run, event))
        case ContextFilled():
            phase = run.compacts_for if run.phase is Phase.COMPACTING else run.phase
            asked = event.by is Author.USER
            filled = replace(run, phase=Phase.COMPACTING, compacts_for=phase, notes_full=event.notes)
            if event.notes:
                return replace(state, main=replace(filled, notes_settled=len(state.scratchpad(run.task))))
            return replace(state, main=replace(filled, compaction_asked=asked))
        case ContextCompacted():
            return replace(state, main=_compacted(run))
    assert_never(event)


def _retrieved(run: TaskRun, *, waits: bool) -> TaskRun:
    """Return the run with its code; `waits`: the user sends the first prompt."""
    return replace(run, phase=Phase.STEPPING, paused=run.paused or waits)


def _kept(run: TaskRun) -> TaskRun:
    """Return the run whose attempt is kept: the next one begins there, and with the prompt of the first.

    Without a change, the attempt that was kept is given up.
    """
    tree, failures = (run.tree, 0) if run.changed else ("", run.failures)
    kept = replace(run, kept_tree=tree, kept_results=run.results or (), phase=Phase.STEPPING)
    return replace(kept, failures=failures, reflected=0, prompt_parts=0, last_figures=None)


def _rejected(run: TaskRun, event: ActionRejected) -> TaskRun:
    counted = int(run.phase is not Phase.COMPACTING)
    if event.again:
        # Who changes nothing where all passes has nothing more to do; nor where fewer old failures are left.
        better = not run.old_failures or fewer_fail(run.baseline or (), run.results or ())
        done = run.changed and run.shown_to_pass and better
        run = replace(run, prompt_parts=0, last_figures=None, phase=Phase.COMMITTING if done else run.phase)
    return replace(
        run,
        answer=None,
        failures=run.failures + int(counted and not event.empty_finish),
        tool_calls=run.tool_calls + counted,
        finish_returned=run.finish_returned or event.empty_finish,
        judge_attempts=run.judge_attempts + int(bool(event.judges)),
    )


def _with_context(run: TaskRun, event: SkillsChosen | ChunkPinned | ChunkDropped | CompactionAsked) -> TaskRun:
    match event:
        case SkillsChosen():
            return replace(run, skills=event)
        case ChunkPinned():
            return _pinned(run, event)
        case ChunkDropped():
            return _dropped(run, event.place)
        case CompactionAsked():
            return replace(run, compaction_asked=True)
    assert_never(event)


def _pinned(run: TaskRun, event: ChunkPinned) -> TaskRun:
    others = tuple(chunk for chunk in run.pinned if chunk.place != event.chunk.place)
    dropped = tuple(place for place in run.dropped if place != event.chunk.place)
    return replace(run, pinned=(*others, event.chunk) if event.pinned else others, dropped=dropped)


def _dropped(run: TaskRun, place: str) -> TaskRun:
    pinned = tuple(chunk for chunk in run.pinned if chunk.place != place)
    return replace(run, pinned=pinned, dropped=(*(each for each in run.dropped if each != place), place))


def _compacted(run: TaskRun) -> TaskRun:
    return replace(
        run,
        phase=run.compacts_for if run.phase is Phase.COMPACTING else run.phase,
        compaction_asked=False,
        compactions=run.compactions + 1,
        prompt_parts=0,
        last_figures=None,
        answer=None,
    )


def _started(state: SessionState, event: TaskStarted) -> SessionState:
    run = TaskRun(
        task=event.task,
        definition=event.definition,
        workspace=event.workspace,
        checks=event.checks,
        required=event.required,
        specs=event.specs or specs_of_0_1(event.tools),
        commit_convention=event.commit_convention,
        phase=Phase.BASELINE if event.checks else Phase.RETRIEVING,
        tree=event.workspace.tree,
    )
    return replace(state, main=run, past=state.runs, trouble=None)


def _costed(state: SessionState, run: TaskRun, answer: ModelAnswered | ModelInterrupted) -> TaskRun:
    figures = answer.figures
    asked = state.model_for(state.prompt.purpose) if state.prompt is not None else None
    thinks = asked is not None and asked.thinks
    # A request for a summary is counted apart, because no step's prompt grows from it.
    is_summary = run.phase is Phase.COMPACTING
    counts = bool(figures.prompt_tokens) and not is_summary
    return replace(
        run,
        tokens=run.tokens + figures.prompt_tokens + figures.answer_tokens,
        dollars=run.dollars + figures.dollars,
        working_seconds=run.working_seconds + figures.prompt_seconds + figures.answer_seconds,
        reads=run.reads if is_summary else run.reads.plus(reads_of(figures, run.last_figures)),
        last_figures=reusable_figures(answer, thinks=thinks) if counts else run.last_figures,
    )
