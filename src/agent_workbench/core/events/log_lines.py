"""Events as single lines of a log. Events without interest for a person have none."""

from agent_workbench.core.approval_rules import mode_label
from agent_workbench.core.checks.results import all_passed
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Author,
    ChatReplied,
    ChatShortened,
    ChatStarted,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    CompactionAsked,
    ConsultantAnswered,
    ConsultantAsked,
    ConsultStatus,
    ContextCompacted,
    ContextFilled,
    EndpointChosen,
    EndpointPassed,
    Event,
    GrammarIgnored,
    HookAnswered,
    InterruptCause,
    KnowledgeFound,
    ModeChanged,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    ModelSwitched,
    NotesOffered,
    PauseChanged,
    PlanAnswered,
    PlanAsked,
    PlanDispatched,
    PlanRejected,
    PlanSurveyed,
    PlaybookFinished,
    ProposalReplaced,
    ReflexionNoted,
    SessionForked,
    SessionLeft,
    SessionResumed,
    SessionStarted,
    SkillsChosen,
    StepUndone,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskRouted,
    TaskStarted,
    TasksWithdrawn,
    TestsFinished,
    TroubleMet,
    UndoAsked,
    UserSaid,
)
from agent_workbench.core.hook_answers import HookVerdict, describe_answer
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.playbooks import summary
from agent_workbench.core.proposals import UNASKED, Verdict, describe_hunk_choice
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.core.tools.spec import describe_unheld

LINE_CHARS = 200


def log_line(event: Event) -> str:
    """Return one line of plain text about `event`, empty if it has none."""
    return sanitize_line(_said(event), LINE_CHARS)


def _said(event: Event) -> str:
    match event:
        case SessionStarted():
            return f"session {event.session} at {event.base[:10]}"
        case SessionForked():
            return "a fork: its own work begins here"
        case SessionResumed():
            return "session resumed"
        case SessionLeft():
            return f"session left: {event.reason}"
        case ModelObserved():
            scripted = " (its answers are scripted)" if event.facts.scripted else ""
            who = f"model {event.facts.model}, {event.facts.context_tokens} tokens of context{scripted}"
            return "; ".join((who, *(f"skipped: {each}" for each in event.facts.passed)))
        case ModelSwitched(model=""):
            return "the task is switched back to the model of the settings"
        case ModelSwitched():
            return f"the task is switched to the model {event.model} (endpoint {event.endpoint})"
        case EndpointChosen(choice=choice):
            return f"asking {choice.endpoint} for the {event.purpose}: {choice.why}"
        case EndpointPassed():
            return f"{event.endpoint} could not answer the {event.purpose}, the next one is asked: {event.reason}"
        case TaskRouted(decision=decision):
            return f"{decision.task} was given to {decision.worker}: {'; '.join(decision.reasons)}"
        case GrammarIgnored():
            return f"{event.endpoint} ignores grammars: {event.what}"
        case TroubleMet():
            return f"trouble ({event.source}): {event.what} - {event.advice}"
        case TaskStarted():
            brought = [f"{spec.name} of {spec.source}" for spec in event.specs if not spec.builtin]
            tools = (f"tools: {', '.join(brought)}",) if brought else ()
            started = f"{event.task} started on {event.workspace.branch}: {event.definition.description}"
            return "; ".join((started, *tools, *describe_unheld(event.specs)))
        case ModelAnswered() if event.text.lstrip().startswith("Reflexion:") and "\nAction:" not in event.text:
            return ""  # `ReflexionNoted` follows and says it.
        case ModelAnswered():
            return f"step {event.step}: {event.text.removeprefix('Thought:')}"
        case ModelInterrupted(partial="", reasoning="", cause=InterruptCause.DIED):
            return f"step {event.step}: no answer: {event.what}"
        case ModelInterrupted():
            return f"step {event.step}: the answer was interrupted ({event.cause}) {event.what}"
        case ActionRejected(judges=judges) if judges:
            return f"step {event.step} tried to change what judges the task: {event.reason}"
        case ActionRejected():
            return f"step {event.step} was invalid: {event.reason}"
        case ReflexionNoted():
            return f"reflexion: {event.text}"
        case UserSaid():
            return f"the user said: {event.text}"
        case _:
            return (
                _said_of_context(event)
                or _said_of_plan(event)
                or _said_of_consultation(event)
                or _said_of_chat(event)
                or _said_of_hook(event)
                or _said_of_work(event)
            )


def _said_of_context(event: Event) -> str:
    match event:
        case SkillsChosen():
            taken = ", ".join(f"{each.name} ({each.reason})" for each in event.skills) or "none"
            left_out = ", ".join(each.name for each in event.left_out)
            return f"skills: {taken}" + (f"; left out: {left_out}" if left_out else "")
        case KnowledgeFound():
            found = f"{counted_text(len(event.notes), 'note')} found" if event.notes else "no notes found"
            return "; ".join(filter(None, (found, event.problem)))
        case NotesOffered():
            return f"{counted_text(len(event.notes), 'note')} offered from {event.origin}"
        case CodeRetrieved():
            anew = "the model begins with the code as it is now; " if event.failing else ""
            return f"{anew}{counted_text(len(event.chunks), 'piece')} of code found"
        case ChunkPinned():
            return f"{'pinned' if event.pinned else 'unpinned'} {event.chunk.place}"
        case ChunkDropped():
            return f"dropped {event.place}"
        case CompactionAsked():
            return "the user asked for a summary of the older steps"
        case ContextFilled(notes=True):
            return f"the scratchpad is long: {event.prompt_tokens} tokens"
        case ContextFilled(by=Author.USER):
            return "the older steps become a summary, as the user asked"
        case ContextFilled():
            return f"the context is full: {event.prompt_tokens} tokens of {event.context_tokens}"
        case ContextCompacted(summary=""):
            return "code that has no room in the context was left out"
        case ContextCompacted():
            return f"older steps became a summary (by {event.by}): {event.summary}"
        case _:
            return ""


def _said_of_plan(event: Event) -> str:
    match event:
        case PlanAsked():
            return f"the user asked for a plan: {event.goal}"
        case PlanSurveyed():
            return (
                f"{counted_text(len(event.code), 'piece')} of code and {len(event.tests)} of tests found for the plan"
            )
        case PlanAnswered(stopped=""):
            return f"plan: {event.text}"
        case PlanAnswered():
            return f"the plan was interrupted ({event.stopped})"
        case PlanRejected():
            return f"that was no plan: {event.reason}"
        case PlanDispatched():
            return f"{event.by} dispatched {', '.join(f'{each.task} as {each.name}' for each in event.tasks)}"
        case TasksWithdrawn():
            return f"{event.by} withdrew {', '.join(event.names)}: {event.reason}"
        case _:
            return ""


def _said_of_consultation(event: Event) -> str:
    match event:
        case ConsultantAsked():
            about = f" about {', '.join(event.paths)}" if event.paths else ""
            return f"asked the consultant {event.skill}{about}"
        case ConsultantAnswered(status=ConsultStatus.OK):
            return f"the consultant answered ({event.model or 'unknown model'}): {event.text}"
        case ConsultantAnswered():
            return f"the consultation ended without an answer ({event.status}): {event.reason}"
        case _:
            return ""


def _said_of_chat(event: Event) -> str:
    match event:
        case ChatStarted():
            return f"a chat with {len(event.specs)} tools: {', '.join(spec.name for spec in event.specs)}"
        case ChatReplied(cut=True):
            return f"reply ({event.why_cut}): {event.text}"
        case ChatReplied():
            return f"reply: {event.text}"
        case ChatShortened():
            return "the context is full: the older part of the conversation is no longer sent"
        case _:
            return ""


def _said_of_hook(event: Event) -> str:
    match event:
        case HookAnswered(point=point) if point.is_proposal and event.verdict is not HookVerdict.NONE:
            return describe_answer(event.hook, event.verdict, event.reason)
        case HookAnswered(failed=True):
            return f"hook {event.hook} failed at {event.point}: {event.reason}"
        case _:
            return ""


def _said_of_work(event: Event) -> str:
    match event:
        case ActionProposed():
            return "" if event.proposal.kind is Permission.READ else f"waits: {event.proposal.described}"
        case ProposalReplaced() if event.proposal.hunks:
            return f"the user {describe_hunk_choice(event.proposal.hunks)}"
        case ActionDecided():
            reason = f": {event.reason}" if event.reason else ""
            return "" if event.by == UNASKED else f"{event.verdict} by {event.decider}{reason}"
        case AbortAsked():
            return event.reason
        case UndoAsked():
            return "the user undoes the last diff" if event.by is Author.USER else "the attempt failed: begins again"
        case StepUndone():
            return f"undid the diff of step {event.step} ({', '.join(event.paths)})"
        case ModeChanged():
            return f"mode {mode_label(event.mode)}"
        case PauseChanged():
            return "paused by the user" if event.paused else "resumed after a pause"
        case ActionFinished(result=ActionResult.REFUSED | ActionResult.UNKNOWN | ActionResult.STOPPED):
            return f"{event.result}: {event.observation}"
        case TestsFinished():
            failed = [result.command for result in event.results if not result.passed]
            verdict = "passed" if all_passed(event.results) else f"FAILED: {', '.join(failed)}"
            back = f"; put back {', '.join(event.restored_paths)}" if event.restored_paths else ""
            left = f"; removed {', '.join(event.removed_paths)}" if event.removed_paths else ""
            return f"{event.purpose.label} {verdict}{back}{left}"
        case PlaybookFinished():
            ended = "failed" if event.failed else "ended"
            return f"{event.request.text} {ended}: {summary(event.hosts) or 'no host was counted'}"
        case TaskCommitted():
            return f"committed {event.commit[:10]} on {event.branch}"
        case TaskMerged():
            return f"merged into {event.outcome.into} ({event.outcome.how})"
        case TaskRolledBack():
            return f"rolled back: {event.reason}"
        case TaskFinished():
            return f"{event.task} {event.status}: {event.reason}"
        case _:
            return ""


def phase_and_status(event: Event) -> tuple[str, str] | None:
    """Return phase and status of an event in the log that judges read, None for an event without an entry there."""
    match event:
        case TaskStarted():
            return "start", "ok"
        case ActionDecided(verdict=verdict, by=by) if by != UNASKED and verdict is not Verdict.APPROVE:
            return "gate", verdict.value
        case ProposalReplaced() if event.proposal.hunks:
            return "gate", "partly"
        case TestsFinished() if not all_passed(event.results):
            return "checks", "failed"
        case ActionRejected():
            return "step", "invalid"
        case ReflexionNoted():
            return "reflexion", "ok"
        case UserSaid():
            return "user", "ok"
        case AbortAsked():
            return "end", "aborted"
        case TaskFinished():
            return "end", "ok" if event.status is TaskStatus.DONE else "failed"
        case _:
            return None


def time_taken(event: Event) -> str:
    """Return result and duration of an action that ended, with its number of new diagnostics; empty for others."""
    if not isinstance(event, ActionFinished):
        return ""
    found = f"; {counted_text(len(event.diagnostics), 'new diagnostic')}" if event.diagnostics else ""
    return f"{event.result}, {event.seconds:.3f} s{found}"


def detail(event: Event) -> str:
    """Return the full text that belongs to an event, not sanitized; empty if its line says everything."""
    match event:
        case ModelAnswered() | PlanAnswered() | ConsultantAnswered() | ChatReplied():
            return event.text
        case ModelInterrupted():
            return event.partial
        case ActionProposed() | ProposalReplaced():
            return event.proposal.diff or (event.proposal.text if event.proposal.kind is not Permission.READ else "")
        case ActionFinished():
            return event.observation
        case ActionRejected() if len(_said(event)) > LINE_CHARS:
            return event.reason
        case TestsFinished():
            return "\n".join(f"$ {each.command}\n{each.output}" for each in event.results)
        case PlaybookFinished():
            return "\n".join((*(host.text for host in event.hosts), *((event.lint.text,) if event.lint else ())))
        case TaskCommitted():
            return event.message
        case _:
            return ""
