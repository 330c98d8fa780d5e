"""Markdown of a chat: messages, calls and replies, in order."""

from collections.abc import Iterator

from agent_workbench.core.events import ActionFinished, ActionProposed, ChatReplied, CodeRetrieved, UserSaid
from agent_workbench.core.state.chat import Chat
from agent_workbench.core.text.markdown import code, fenced

MOST_CHARS = 8_000


def chat_report(chat: Chat) -> Iterator[str]:
    """Yield the lines of the report; every text in it renders literally."""
    yield "# Chat"
    for recorded in chat.history:
        event = recorded.event
        match event:
            case UserSaid():
                yield from ("", "## You", "", fenced(event.text, limit_chars=MOST_CHARS))
                yield from (f"- with {code(chunk.place)}" for chunk in event.files)
                yield from (f"- with the skill {code(skill.name)}" for skill in event.skills)
            case CodeRetrieved():
                yield from (f"- found {code(chunk.place)}" for chunk in event.chunks)
            case ActionProposed():
                yield from ("", f"Call of {code(event.proposal.tool)}:", "", fenced(event.proposal.text))
            case ActionFinished():
                yield from ("", f"Result ({event.result}, {event.seconds:.1f} s):", "", fenced(event.observation))
            case ChatReplied():
                cut = f" ({event.why_cut})" if event.cut else ""
                yield from ("", f"## Reply{cut}", "", fenced(event.text, "markdown", limit_chars=MOST_CHARS))
            case _:
                pass
