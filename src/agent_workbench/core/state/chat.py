"""State of a chat: the conversation so far, the open message, and the call at the gate."""

from msgspec import Struct, field

from agent_workbench.core.events import ActionDecided, ChatReplied, ModelAnswered, Recorded
from agent_workbench.core.proposals import Proposal, ProposalStage
from agent_workbench.core.state.growing_tuple import GrowingTuple
from agent_workbench.core.tools.spec import ToolSpec


class Chat(Struct, frozen=True):
    """Conversation of a session that works on no task.

    `history` holds every event since it started. `due`: the newest message has no reply yet. `calls` and `misses` count
    the calls, and the consecutive answers that could not be read, since that message. Prompts leave out the events up
    to `shortened_seq`. `prompt_parts` is the number of parts that the next prompt shares with the previous one.
    """

    specs: tuple[ToolSpec, ...] = ()
    wording: int = 0
    history: GrowingTuple[Recorded] = field(default_factory=GrowingTuple)
    step: int = 0
    answered_step: int = 0
    prompt_parts: int = 0
    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None
    answer: ModelAnswered | None = None
    due: bool = False
    calls: int = 0
    misses: int = 0
    tokens: int = 0
    dollars: float = 0.0
    shortened_seq: int = -1
    reply: ChatReplied | None = None

    @property
    def waiting(self) -> Proposal | None:
        """The call that waits at the gate, None if there is none."""
        return self.proposal if self.stage is ProposalStage.WAITING else None
