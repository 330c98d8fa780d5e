"""Events of hooks: a command of the user or the repository ran because of another event."""

from agent_workbench.core.hook_answers import HookVerdict
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings.hooks import HookPoint


class HookStarted(RecordedValue, frozen=True):
    """A hook is about to run. `proposal_id` is the proposal that it is about, empty if it is about none."""

    hook: str
    point: HookPoint
    proposal_id: ProposalId = ProposalId("")


class HookAnswered(RecordedValue, frozen=True):
    """A hook ended. `failed`: the answer is not its own, `reason` says what went wrong.

    Only the `verdict` of a hook that ran before a decision has an effect.
    """

    hook: str
    point: HookPoint
    verdict: HookVerdict
    proposal_id: ProposalId = ProposalId("")
    reason: str = ""
    seconds: float = 0.0
    failed: bool = False
