"""The prompt: a list of messages, a pure function of the session's state, growing only at its end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from agent_workbench.core.events import (
    Event,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    TaskStarted,
)
from agent_workbench.core.model import Message, Purpose, Role
from agent_workbench.core.state import SessionState
from agent_workbench.engine.reflecting import reflexion_request
from agent_workbench.engine.tools import open_tools
from agent_workbench.engine.wording import assignment, label, rules, told


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a prompt with its name in the receipt."""

    role: Role
    label: str
    text: str


def build_parts(state: SessionState, purpose: Purpose) -> tuple[Part, ...]:
    """Return the prompt's parts in order. Every prompt of a task begins with the parts of the one before."""
    run = state.run
    if run is None:
        return ()
    parts = [Part(Role.SYSTEM, "rules", rules(open_tools(run.tools)))]
    unseen: list[Part] = []  # said after a prompt was sent and before its answer: the model reads it after its answer
    asked = False
    for number, recorded in enumerate(run.history):
        event = recorded.event
        if isinstance(event, ScratchpadChanged) and event.task != run.task:
            continue
        if isinstance(event, PromptBuilt):
            parts = _asked(parts + unseen, event.purpose, run.history[:number])
            unseen, asked = [], True
        elif isinstance(event, ModelAnswered | ModelInterrupted):
            parts, unseen, asked = [*parts, *_parts_of(event), *unseen], [], False
        else:
            (unseen if asked else parts).extend(_parts_of(event))
    return tuple(_asked(parts + unseen, purpose, run.history))


def to_messages(parts: tuple[Part, ...]) -> tuple[Message, ...]:
    """Return the messages: neighbours of one role joined, so that roles alternate as chat templates expect."""
    messages: list[Message] = []
    for part in parts:
        if messages and messages[-1].role is part.role:
            messages[-1] = Message(part.role, f"{messages[-1].text}\n\n{part.text}")
        else:
            messages.append(Message(part.role, part.text))
    return tuple(messages)


def prompt_sha(messages: tuple[Message, ...]) -> str:
    """Return SHA-256 over roles and texts; the same prompt has the same."""
    digest = sha256()
    for message in messages:
        digest.update(f"{message.role}\0{message.text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _parts_of(event: Event) -> Iterator[Part]:
    match event:
        case TaskStarted():
            yield Part(Role.USER, "task", assignment(event))
            for skill in event.skills:
                yield Part(Role.USER, f"skill {skill.name}", f"Skill {skill.name}:\n{skill.text}")
        case ModelAnswered():
            yield Part(Role.ASSISTANT, "answer", event.text)
        case ModelInterrupted(cause=InterruptCause.LENGTH):
            yield Part(Role.ASSISTANT, "answer", event.partial)
            yield Part(Role.USER, "observation", told(event))
        case _:
            if text := told(event):
                yield Part(Role.USER, label(event), text)


def _asked(parts: list[Part], purpose: Purpose, history: Sequence[Recorded]) -> list[Part]:
    """Return the parts with what `purpose` asks for at their end, once however often it was asked in vain."""
    if purpose is not Purpose.REFLEXION:
        return parts
    asking = Part(Role.USER, "reflexion", reflexion_request(history))
    return parts if parts[-1] == asking else [*parts, asking]
