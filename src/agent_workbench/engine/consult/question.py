"""One question to a model, outside of any session."""

from contextlib import aclosing

from agent_workbench.core.errors import ModelError, ModelUnavailable
from agent_workbench.core.model import AnswerEnd, ModelRequest, StopCause, TextDelta
from agent_workbench.core.ports.model import Model

CUT = "\n\n(The answer was cut at the token limit.)"
MOST_ENDPOINTS = 8


async def ask_once(model: Model, request: ModelRequest) -> tuple[str, str]:
    """Return the answer and the model that gave it; an endpoint that fails is followed by the next of the chain.

    Raises `ModelError` if none answers.
    """
    for _ in range(MOST_ENDPOINTS):
        await model.observe(request.purpose)
        text = ""
        try:
            async with aclosing(model.answer(request)) as items:
                async for item in items:
                    if isinstance(item, TextDelta):
                        text += item.text
                    elif isinstance(item, AnswerEnd):
                        return text + (CUT if item.stop is StopCause.LENGTH else ""), item.model or item.endpoint
        except ModelError as error:
            if not error.another:
                raise
    raise ModelUnavailable("no endpoint gave an answer", advice="`agent model status` tells which ones answer")
