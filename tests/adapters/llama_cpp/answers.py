"""Asks a model and sorts what came."""

import contextlib

from msgspec import Struct, field

from agent_workbench.core.model import (
    AnswerEnd,
    Message,
    ModelRequest,
    PromptProgress,
    Role,
    Sampling,
    TextDelta,
    ThoughtDelta,
)
from agent_workbench.core.ports.model import Model


class Collected(Struct):
    """The items of one answer, sorted."""

    deltas: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    progress: list[PromptProgress] = field(default_factory=list)
    ends: list[AnswerEnd] = field(default_factory=list)
    last_is_end: bool = False

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @property
    def thought(self) -> str:
        return "".join(self.thoughts)

    @property
    def end(self) -> AnswerEnd:
        assert len(self.ends) == 1
        return self.ends[0]


def ask(
    text: str = "Please read the file.",
    *,
    grammar: str = "",
    answer_tokens: int = 64,
    answer_seconds: float = 30.0,
    subject: str = "",
    seed: int = 0,
    sampling: Sampling | None = None,
    exact: bool = False,
    prompt_tokens: int = 0,
    dollars_left: float | None = None,
) -> ModelRequest:
    """Return a request with one user message."""
    return ModelRequest(
        (Message(Role.SYSTEM, "You are careful."), Message(Role.USER, text)),
        grammar=grammar,
        answer_tokens=answer_tokens,
        answer_seconds=answer_seconds,
        subject=subject,
        seed=seed,
        sampling=sampling or Sampling(),
        exact=exact,
        prompt_tokens=prompt_tokens,
        dollars_left=dollars_left,
    )


async def collect(model: Model, request: ModelRequest) -> Collected:
    """Read a whole answer."""
    collected = Collected()
    async with contextlib.aclosing(model.answer(request)) as items:
        async for item in items:
            collected.last_is_end = False
            match item:
                case TextDelta(text):
                    collected.deltas.append(text)
                case ThoughtDelta(text):
                    collected.thoughts.append(text)
                case PromptProgress():
                    collected.progress.append(item)
                case AnswerEnd():
                    collected.ends.append(item)
                    collected.last_is_end = True
    return collected
