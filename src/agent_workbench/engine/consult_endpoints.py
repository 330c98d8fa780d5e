"""Endpoints of a consultation, named or by the skill's chain, and one question to a model."""

from contextlib import aclosing

from agent_workbench.core.consult_requests import ConsultRequest, consultant_named
from agent_workbench.core.diagnostics import endpoint_named
from agent_workbench.core.errors import ModelError, ModelUnavailable, UsageError
from agent_workbench.core.model import AnswerEnd, ModelRequest, Purpose, StopCause, TextDelta
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import SHORT_FORM, Chain
from agent_workbench.core.text.amounts import did_you_mean, quoted

CUT = "\n\n(The answer was cut at the token limit.)"
MOST_ENDPOINTS = 8


def chain_of(settings: Settings, request: ConsultRequest) -> Chain:
    """Return the endpoints to ask in order; an endpoint that the request names is the only one.

    Raises `UsageError` for a name that is neither an endpoint nor the model of one: nobody chooses other addresses.
    """
    if request.model:
        return (endpoint_called(settings, request.model),)
    own = dict(settings.roles.skills)
    chains = (own[name] for name in consultant_named(request.skill).skills if own.get(name))
    return next(chains, settings.chain(Purpose.CONSULTANT))


def model_label(settings: Settings, endpoint: str) -> str:
    """Return the model of an endpoint for the prompt: its name in requests, else that of the endpoint."""
    found = endpoint_named(settings, endpoint)
    return (found.model if found is not None else "") or ("" if endpoint == SHORT_FORM else endpoint)


def endpoint_called(settings: Settings, name: str) -> str:
    """Return the endpoint with this name, or the first whose model has it; raise `UsageError` with those there are."""
    names = (*dict(settings.endpoints), SHORT_FORM)
    models = {model_label(settings, each): each for each in reversed(names)}
    models.pop("", None)
    if name in names:
        return name
    if name in models:
        return models[name]
    known = tuple(dict.fromkeys((*names, *models)))
    raise UsageError(
        f"{quoted(name)} is no endpoint and no model of one{did_you_mean(name, known)}",
        advice=f"there are: {', '.join(known)}",
    )


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
