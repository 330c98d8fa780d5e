"""Context of a consultation, and its prompt as a pure function of what `ConsultantAsked` records."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from agent_workbench.core.consult_log import LogEntry
from agent_workbench.core.events import Event
from agent_workbench.core.events.consult import ConsultantAsked
from agent_workbench.core.live import Consulting, Streaming
from agent_workbench.core.model import Message, Role
from agent_workbench.core.ports.workspace import Sources
from agent_workbench.core.settings import Settings
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.runtime.budget import dollars_left
from agent_workbench.engine.runtime.scope import TaskBounds
from agent_workbench.engine.runtime.session_context import SessionContext
from agent_workbench.engine.runtime.tool_context import Ports

VERSION = 1
"""Version of the texts below; `ConsultantAsked.wording` records it."""
RULE = "\n---\n\n"
VERIFIER = """\
You check the answer of a consultant. Accept it if it follows the consultant's rules, answers what was asked, and \
states nothing that the question does not show. Answer with one line of JSON and nothing else: \
{"accept": true or false, "feedback": "what is wrong, in one sentence"}"""


def show_nothing(_: Streaming) -> None:
    """Ignore an answer that arrives."""


class ConsultContext(Struct, frozen=True):
    """Surroundings of a consultation.

    `state` returns the session's newest state, `record` adds an event to it. `files` are those of the workspace or the
    checkout, of which `may_read` admits some. `past` are the entries of earlier sessions with the label of the request.
    `show` is given the answer as it arrives. `dollars_left` bounds the price (None: only the daily cap does).
    """

    ports: Ports
    settings: Settings
    state: Callable[[], SessionState]
    record: Callable[[Event], Awaitable[object]]
    files: Sources
    may_read: Callable[[str], bool] = lambda _: True
    past: tuple[LogEntry, ...] = ()
    show: Callable[[Streaming], None] = show_nothing
    dollars_left: float | None = None


async def consult_context(session: SessionContext, skill: str) -> ConsultContext:
    """Return the context of a consultation within a session: its task's files and scope, if there is a task."""
    state = session.state
    run = state.run if state.unfinished else None
    bounds = TaskBounds(session.settings, run.definition, state) if run is not None else None
    return ConsultContext(
        session.ports,
        session.settings,
        lambda: session.state,
        session.record,
        await session.sources(),
        bounds.may_read if bounds is not None else lambda _: True,
        show=lambda streaming: session.publisher.show_consulting(Consulting(skill, streaming)),
        dollars_left=dollars_left(run) if run is not None else None,
    )


def consult_messages(asked: ConsultantAsked, feedback: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the messages of an attempt; `feedback` is what a verifier said of the earlier ones."""
    system = RULE.join(filter(None, (asked.protocols, asked.discipline)))
    blocks = filter(None, (asked.knowledge, asked.history, asked.contents))
    user = RULE.join((*blocks, asked.task))
    said = "".join(f"\n\nPrior attempt feedback: {each}" for each in feedback)
    return Message(Role.SYSTEM, system), Message(Role.USER, f"{user}{said}")


def verifier_messages(asked: ConsultantAsked, text: str) -> tuple[Message, ...]:
    """Return the question whether an answer is to be taken."""
    question = consult_messages(asked)[1].text
    told = f"## Rules\n\n{asked.discipline}\n\n## Question\n\n{question}\n\n## Answer\n\n{text}"
    return Message(Role.SYSTEM, VERIFIER), Message(Role.USER, told)
