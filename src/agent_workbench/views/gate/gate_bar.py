"""The gate bar: the waiting proposal, also of a followed session, a running action, or what can be started."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.approval_rules import offered_rules
from agent_workbench.core.ids import TaskId
from agent_workbench.core.inbox import reference_to
from agent_workbench.core.intents import StopAction, StopAnswer
from agent_workbench.core.live import Followed, Live, SessionUpdate, Streaming
from agent_workbench.core.plan import TaskStatus, is_queued
from agent_workbench.core.proposal_kinds import MergeProposal
from agent_workbench.core.proposals import Proposal, is_too_long, shown_sha
from agent_workbench.core.repo.workspace import MergeMethod
from agent_workbench.core.settings import ApprovalMode, Permission
from agent_workbench.core.state.applied_diffs import last_applied_diff
from agent_workbench.core.state.proposal_hooks import awaited_hook, describe_objection, objections
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.work import Planning
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.views.code import index_words
from agent_workbench.views.gate.proposal_views import describe, headline, proposal_key
from agent_workbench.views.plan import is_mergeable

TOO_LONG = "too long for the inbox"


class GateMode(StrEnum):
    """Subject of the bar."""

    STARTING = "starting"
    WAITING = "waiting"
    BUSY = "busy"
    PAUSED = "paused"
    TROUBLE = "trouble"
    IDLE = "idle"


class GateAct(StrEnum):
    """Actions that a key at the gate triggers."""

    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"
    SKIP = "skip"
    ALWAYS = "always"
    METHOD = "method"
    STOP = "stop"
    PAUSE = "pause"
    GO_ON = "go on"
    UNDO = "undo"
    ABORT = "abort"
    RETRY = "retry"
    START = "start"
    SEND = "send"
    SAY = "say"
    LEAVE = "leave"
    OPEN = "open here"


DECIDABLE = frozenset({GateAct.APPROVE, GateAct.REJECT, GateAct.SKIP})
"""Verdicts that another process can give; everything else needs the session's screen."""


class Waiting(Struct, frozen=True):
    """The waiting proposal: what a decision must name, and the text an edit starts from."""

    proposal: Proposal
    key: str
    sha: str


class GateView(Struct, frozen=True):
    """The bar: `word` (the subject's kind), `text` (the subject), `more` (figures or advice), and the actions.

    `paused`: the user paused the task (None: there is no task to pause). `stop` ends what runs (None: nothing can be
    stopped). `accepts`: a mode other than `ask` is in force. `followed`: the session is not open here.
    """

    mode: GateMode
    word: str
    text: str = ""
    more: str = ""
    acts: tuple[GateAct, ...] = ()
    waiting: Waiting | None = None
    task: TaskId | None = None
    paused: bool | None = None
    stop: StopAnswer | StopAction | None = None
    accepts: bool = False
    followed: bool = False


QUIET_SECONDS = 30.0
"""Seconds without output after which the bar says so."""
LAST_LINE_CHARS = 400
TOO_LONG_CHARS = 40
"""Maximum length of the text beside the reason why a long proposal cannot be approved."""


def view_gate(update: SessionUpdate) -> GateView:
    """Return the content of the gate bar."""
    view, run = _view(update), update.state.run
    if not update.live.decidable:
        return view
    accepts = update.state.mode.mode is not ApprovalMode.ASK
    view = replace(view, stop=_stop(update) if view.mode is GateMode.BUSY else None, accepts=accepts)
    if run is None or not update.state.unfinished:
        return view
    then = " · ".join(filter(None, ("pauses before the next step", view.more)))
    tells = run.paused and view.mode in {GateMode.WAITING, GateMode.BUSY}
    return replace(view, paused=run.paused, more=then if tells else view.more)


def _stop(update: SessionUpdate) -> StopAnswer | StopAction | None:
    """Return the intent that stops what runs: a running action, else the model's answer or what leads to it."""
    begun = update.state.main.gate.begun if update.state.main is not None else None
    if begun is None:
        return StopAnswer()
    return StopAction(begun.id) if begun.stoppable else None


def _view(update: SessionUpdate) -> GateView:
    state, live = update.state, update.live
    run, work = state.run, state.work
    if state.trouble is not None:
        first = GateAct.LEAVE if state.trouble.lasting else GateAct.RETRY
        acts = (first, *((GateAct.ABORT,) if state.at_work else ()))
        what, advice = sanitize_line(state.trouble.what), sanitize(state.trouble.advice, limit_chars=400)
        return GateView(GateMode.TROUBLE, "trouble", what, sanitize_line(advice), acts if live.decidable else ())
    if state.waiting is not None:
        return _waiting(update, state.waiting)
    if run is not None and run is work and run.awaits_send and not live.activity:
        acts = (GateAct.SEND, GateAct.ABORT) if live.decidable else ()
        return GateView(GateMode.PAUSED, "context", f"{run.task}, before its first prompt", "nothing is sent yet", acts)
    if run is not None and run.held and not live.activity:
        acts = (GateAct.GO_ON, *((GateAct.UNDO,) if last_applied_diff(run) is not None else ()), GateAct.ABORT)
        text = f"{run.task}, after step {run.step}" if run.step else f"{run.task}, before its first step"
        return GateView(GateMode.PAUSED, "paused", text, "the model is not asked", acts if live.decidable else ())
    if live.activity or state.at_work:
        pause = GateAct.GO_ON if run is not None and run.paused else GateAct.PAUSE
        stop = (GateAct.STOP,) if _stop(update) is not None else ()
        acts = (*stop, pause, GateAct.ABORT) if state.unfinished else stop if state.in_chat else ()
        if isinstance(work, Planning):
            acts = (*stop, GateAct.ABORT)
        acts = acts if live.decidable else ()
        # Without a session the keys of the panes do nothing.
        mode = GateMode.BUSY if state.session else GateMode.STARTING
        return GateView(mode, sanitize_line(live.activity) or "working", _progress(live), _last_line(live), acts)
    return _idle(state, live)


def _waiting(update: SessionUpdate, proposal: Proposal) -> GateView:
    word, text, more = headline(update.state, proposal)
    run = update.state.run_at_gate
    if is_too_long(proposal):
        text = sanitize_line(text, TOO_LONG_CHARS)
        more = " · ".join(filter(None, (more, "too long to be shown in full, so it cannot be approved")))
    if said := _hooks(update.state, proposal):
        more = " · ".join(filter(None, (said, more)))
    asked = run is not None and run.compaction_asked
    acts = acts_for(proposal, asked=asked) if update.live.decidable else ()
    waiting = Waiting(proposal, proposal_key(proposal), shown_sha(proposal))
    return GateView(GateMode.WAITING, word, text, more, acts, waiting)


def _hooks(state: SessionState, proposal: Proposal) -> str:
    """Return which hook still looks at the proposal, or which one asks for a person, and why."""
    if name := awaited_hook(state, proposal):
        return f"hook {sanitize_line(name, 40)} looks at it"
    return "; ".join(sanitize_line(describe_objection(run), 120) for run in objections(state, proposal))


def acts_for(proposal: Proposal, *, asked: bool = False) -> tuple[GateAct, ...]:
    """Return the possible actions for a proposal, in the order of the key hints.

    A summary that the user `asked` for can be skipped. Any other is required; a rejected one is requested again.
    """
    approvable = () if is_too_long(proposal) or proposal.has_gaps else (GateAct.APPROVE,)
    skippable = proposal.skips or (asked and proposal.kind is Permission.SUMMARY)
    return (
        *approvable,
        GateAct.REJECT,
        *((GateAct.EDIT,) if proposal.editable else ()),
        *((GateAct.SKIP,) if skippable else ()),
        *((GateAct.ALWAYS,) if offered_rules(proposal) else ()),
        *((GateAct.METHOD,) if isinstance(proposal, MergeProposal) and len(proposal.methods) > 1 else ()),
        *((GateAct.ABORT,) if proposal.ends_task else ()),
    )


def next_method(proposal: Proposal) -> MergeMethod | None:
    """Return the method that the key offers next for a merge, None if there is no other."""
    if not isinstance(proposal, MergeProposal) or proposal.method not in proposal.methods:
        return None
    methods = proposal.methods
    return methods[(methods.index(proposal.method) + 1) % len(methods)]


def progress_text(update: SessionUpdate) -> str:
    """Return what the session does now and how far it is, as one line; empty if it waits."""
    live = update.live
    index = " · ".join(index_words(live.index)) if live.index is not None and not live.index.complete else ""
    return (
        "" if not live.activity else "  ".join(filter(None, (sanitize_line(live.activity), index or _progress(live))))
    )


def _progress(live: Live) -> str:
    """Return how far the activity is, its time so far, and for how long it has said nothing."""
    streaming, running = live.streaming, live.running
    told = [live.seconds, streaming.seconds if streaming else 0.0, running.seconds if running else 0.0]
    done = _amount(streaming) if streaming is not None else ""
    seconds = f"{max(told):.0f} s" if running is not None or max(told) >= 1 or done else ""
    quiet = f"no output for {live.quiet_seconds:.0f} s" if live.quiet_seconds >= QUIET_SECONDS else ""
    return ", ".join(filter(None, (done, seconds, quiet)))


def _amount(streaming: Streaming) -> str:
    if not streaming.text and streaming.thought:
        return f"{len(streaming.thought):,} characters"
    if not streaming.text and streaming.prompt_total:
        read = f"reading the prompt, {streaming.prompt_processed:,} of {streaming.prompt_total:,} tokens"
        return f"{read}, {left:.0f} s left" if (left := _reading_seconds(streaming)) >= 1 else read
    return f"{streaming.tokens:,} tokens" if streaming.text else ""


def _reading_seconds(streaming: Streaming) -> float:
    """Return the time that the rest of the prompt takes at the speed so far, 0 if that is unknown."""
    fresh = streaming.prompt_processed - streaming.prompt_cached
    rest = streaming.prompt_total - streaming.prompt_processed
    return streaming.seconds * rest / fresh if fresh > 0 and streaming.seconds >= 1 else 0.0


def _last_line(live: Live) -> str:
    """Return the last line of the output: of a command, else of the answer."""
    streaming = live.streaming
    said = without_colours(live.running.tail) if live.running is not None else ""
    if streaming is not None:
        said = streaming.text or streaming.thought
    lines = said[-LAST_LINE_CHARS:].rstrip().splitlines()
    return sanitize_line(lines[-1], LAST_LINE_CHARS) if lines else ""


def _idle(state: SessionState, live: Live) -> GateView:
    if state.in_chat:
        return GateView(GateMode.IDLE, "chat", "ask the model about this repository", acts=(GateAct.SAY,))
    if not state.plan_path and live.no_plan:
        return GateView(GateMode.IDLE, "no plan", sanitize_line(live.no_plan, 300), "q quits")
    if not state.plan_path:
        return GateView(GateMode.STARTING, "starting", "reading the plan, preparing the model")
    next_task = state.plan.next_task(live.taken)
    if next_task is not None:
        text = sanitize_line(f"{next_task.id}  {next_task.title}")
        return GateView(GateMode.IDLE, "nothing runs", f"next is {text}", "", (GateAct.START,), task=next_task.id)
    if not state.plan.tasks:
        return GateView(GateMode.IDLE, "the plan is empty", ": takes a task in words, P in the plan asks for a plan")
    unmerged = ", ".join(each.id for each in state.plan.tasks if is_mergeable(state, each.id))
    merge = sanitize_line(f"m in the plan merges {unmerged}") if unmerged else ""
    if all(task.status is TaskStatus.DONE for task in state.plan.tasks):
        return GateView(GateMode.IDLE, "all tasks are done", merge or "q quits; `agent replay` plays it back")
    if merge:
        return GateView(GateMode.IDLE, "no other task can start", merge)
    queued = sum(task.status is TaskStatus.QUEUED for task in state.plan.tasks)
    if queued:
        return GateView(GateMode.IDLE, "no task can start", f"{counted_text(queued, 'task')} in the queue; Q shows it")
    failed = ", ".join(each.id for each in state.plan.tasks if each.status is TaskStatus.FAILED)
    if failed:
        return GateView(GateMode.IDLE, "no other task can start", sanitize_line(f"s in the plan starts {failed} again"))
    at_work = f", or another session works on it ({', '.join(live.taken)})" if live.taken else ""
    return GateView(
        GateMode.IDLE,
        "no task can start",
        sanitize_line(f"each is finished, blocked, or assigned to a person{at_work}"),
    )


def view_followed_gate(update: SessionUpdate) -> GateView:
    """Return the content of the gate bar; `open here` is offered while nobody has the session open."""
    followed, state = update.live.followed or Followed(), update.state
    goes_on = _goes_on(state)
    holder = sanitize_line(followed.holder)
    opens = () if holder else (GateAct.OPEN,)
    if state.waiting is not None and followed.decided is not None:
        kind, what, _ = describe(state.waiting)
        more = f"{holder} records it" if holder else goes_on
        return GateView(GateMode.BUSY, followed.decided.verdict.past, f"{kind}  {what}", more, opens, followed=True)
    if state.waiting is not None:
        return _waiting_elsewhere(update, opens)
    if state.trouble is not None:
        own = view_gate(replace(update, live=replace(update.live, decidable=False)))
        return replace(own, acts=opens, followed=True)
    task = sanitize_line(state.run.task) if state.run is not None else ""
    if state.at_work:
        more = f"in {holder}" if holder else goes_on
        return GateView(GateMode.BUSY, "working" if holder else "stopped", task, more, opens, followed=True)
    status = state.run.status if state.run is not None else None
    reason = sanitize_line(state.run.reason) if state.run is not None else ""
    return GateView(GateMode.IDLE, str(status or "nothing waits"), task, reason, followed=True)


def _goes_on(state: SessionState) -> str:
    """Return who goes on with a session that nobody has open: forks of queued tasks are in no queue."""
    if not is_queued(state.plan_path):
        return "the next `agent run` goes on with it"
    return "a worker goes on with it" if state.parent is None else "open it to go on with it"


def _waiting_elsewhere(update: SessionUpdate, opens: tuple[GateAct, ...]) -> GateView:
    own = view_gate(replace(update, live=replace(update.live, decidable=True)))
    proposal = update.state.waiting
    if proposal is None or reference_to(update.state.session, proposal) is None:
        more = " · ".join(filter(None, (own.more, TOO_LONG)))
        return replace(own, acts=opens, more=more, paused=None, accepts=False, followed=True)
    acts = tuple(act for act in own.acts if act in DECIDABLE)
    about = update.live.followed.about if update.live.followed is not None else ()
    more = " · ".join(filter(None, (*about, own.more)))
    return replace(own, acts=acts, more=more, paused=None, accepts=False, followed=True)
