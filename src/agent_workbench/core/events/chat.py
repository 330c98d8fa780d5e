"""Events of a chat. Its messages, prompts, answers, calls and decisions are those of the other groups."""

from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.tools.spec import ToolSpec


class ChatStarted(RecordedValue, frozen=True):
    """The session became a chat: it works on no task. `specs` are the tools of the conversation.

    `wording` is the version of the texts for the model.
    """

    wording: int
    specs: tuple[ToolSpec, ...] = ()


class ChatReplied(RecordedValue, frozen=True):
    """The answer of this step is the reply to the newest message. `cut`: the limit of its length ended it."""

    step: int
    text: str
    cut: bool = False


class ChatShortened(RecordedValue, frozen=True):
    """The context was full: prompts leave out the conversation up to the event `through_seq`."""

    through_seq: int
