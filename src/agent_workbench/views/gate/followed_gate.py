"""Gate bar of a followed session: what can be decided through the inbox, and who goes on with the session."""

from msgspec.structs import replace

from agent_workbench.core.inbox import reference_to
from agent_workbench.core.live import Followed, SessionUpdate
from agent_workbench.core.plan import is_queued
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.views.gate.gate_bar import DECIDABLE, GateAct, GateMode, GateView, view_gate
from agent_workbench.views.gate.proposal_views import describe

TOO_LONG = "too long for the inbox"


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
        return _waiting(update, opens)
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


def _waiting(update: SessionUpdate, opens: tuple[GateAct, ...]) -> GateView:
    own = view_gate(replace(update, live=replace(update.live, decidable=True)))
    proposal = update.state.waiting
    if proposal is None or reference_to(update.state.session, proposal) is None:
        more = " · ".join(filter(None, (own.more, TOO_LONG)))
        return replace(own, acts=opens, more=more, paused=None, accepts=False, followed=True)
    acts = tuple(act for act in own.acts if act in DECIDABLE)
    about = update.live.followed.about if update.live.followed is not None else ()
    more = " · ".join(filter(None, (*about, own.more)))
    return replace(own, acts=acts, more=more, paused=None, accepts=False, followed=True)
