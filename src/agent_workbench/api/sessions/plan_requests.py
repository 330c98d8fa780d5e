"""Plans asked of the model from outside of a screen: a session of its own holds the proposal and the decision."""

from collections.abc import Callable

from msgspec import Struct

from agent_workbench.api.sessions.session_handle import LocalSession
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.api.trusted_repo import repo_or_folder, require_trust, say_nothing
from agent_workbench.bootstrap.repo_context import Say, find_repo
from agent_workbench.core.errors import ModelError, PlanError
from agent_workbench.core.events import TroubleMet
from agent_workbench.core.ids import NO_SESSION, SessionId
from agent_workbench.core.intents import ApproveProposal, Intent, ProposePlan
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import Refused
from agent_workbench.core.proposals import Proposal, ProposalStage, is_too_long, shown_sha
from agent_workbench.core.session_request import Invocation, OpenMode, SessionRequest
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.state.steps import newest_steps

Report = Callable[[SessionUpdate], None]


class PlanRequestState(Struct, frozen=True):
    """State of a plan that was asked for: the proposal that waits, else the `approved` one with its outcome."""

    session: SessionId
    proposal: Proposal | None
    outcome: str = ""
    approved: Proposal | None = None


async def request_plan(
    invocation: Invocation, wanted: ProposePlan, *, approve: bool, report: Report, say: Say
) -> PlanRequestState:
    """Ask the model for a plan in a new session, and leave the session when the plan waits, or is approved (`approve`).

    `report` is called with each update, `say` with a remark. Raises `PlanError`, `ModelError`, what prevents a session
    from opening, and `TrustError` in a command of the agent.
    """
    request = SessionRequest(OpenMode.NEW, preflight=False)
    return await _follow(invocation, request, wanted, report, say, approve=approve)


async def park_plan(invocation: Invocation, goal: str) -> PlanRequestState:
    """Ask the model for a plan that waits for a person; raise as above, and `TrustError` without trust."""
    await require_trust(await find_repo(invocation))
    return await request_plan(invocation, ProposePlan(goal), approve=False, report=lambda _: None, say=say_nothing)


async def answer_plan(
    invocation: Invocation, session: SessionId, answer: Intent, *, report: Report, say: Say
) -> PlanRequestState:
    """Give the answer to the plan that waits in a session; return the next plan, or the outcome. Raises as above."""
    return await _follow(
        invocation, SessionRequest(OpenMode.RESUME, session, preflight=False), answer, report, say, approve=False
    )


async def _follow(
    invocation: Invocation, request: SessionRequest, first: Intent, report: Report, say: Say, *, approve: bool
) -> PlanRequestState:
    await repo_or_folder(invocation, say)
    async with LocalSessionHost(invocation) as host:
        handle = await host.open(request)
        begun, answered = False, ""
        async for update in handle.live():
            report(update)
            state = update.state
            if not begun and _is_open(update):
                await _submit(handle, first)
                begun = True
            elif not begun:
                continue
            elif state.trouble is not None:
                raise _error(state.trouble)
            elif state.open_planning is None:
                return PlanRequestState(state.session, None, _outcome(state), _approved(state))
            elif (waiting := state.waiting) is not None and shown_sha(waiting) != answered:
                if isinstance(first, ApproveProposal) and first.shown_sha == shown_sha(waiting):
                    continue  # the update is older than the answer
                if not approve or is_too_long(waiting):
                    return PlanRequestState(state.session, waiting)
                answered = shown_sha(waiting)
                await _submit(handle, ApproveProposal(waiting.id, answered))
        await handle.wait()
        raise PlanError("the session ended before there was a plan", advice="try again")


def _is_open(update: SessionUpdate) -> bool:
    """Return True once the session takes intents: it has read the plan, cannot, or has a plan at its gate."""
    state = update.state
    return state.session != NO_SESSION and not state.left and bool(state.plan_path or update.live.no_plan)


async def _submit(handle: LocalSession, intent: Intent) -> None:
    outcome = await handle.submit(intent)
    if isinstance(outcome, Refused):
        raise PlanError(outcome.reason)


def _error(trouble: TroubleMet) -> ModelError | PlanError:
    kind = ModelError if trouble.source == "model" else PlanError
    return kind(trouble.what, advice=trouble.advice)


def _approved(state: SessionState) -> Proposal | None:
    planning = state.planning
    return planning.gate.proposal if planning is not None and planning.gate.stage is ProposalStage.FINISHED else None


def _outcome(state: SessionState) -> str:
    ended = (step.result.event for step in newest_steps(state.latest_events) if step.result is not None)
    last = next(ended, None)
    return last.observation if last is not None and state.planning and state.planning.gate.decision else ""
