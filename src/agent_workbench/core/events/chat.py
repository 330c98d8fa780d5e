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
    """The answer of this step is the reply to the newest message.

    `cut`: it has no end of its own. It was cut at the limit of its length, or stopped as it repeated itself (`looped`).
    """

    step: int
    text: str
    cut: bool = False
    looped: bool = False

    @property
    def why_cut(self) -> str:
        """Why the reply is incomplete, in a few words; empty for a complete one."""
        if not self.cut:
            return ""
        return "stopped: it repeated itself" if self.looped else "cut at the token limit"


class ChatShortened(RecordedValue, frozen=True):
    """The context was full: prompts leave out the conversation up to the event `through_seq`."""

    through_seq: int
