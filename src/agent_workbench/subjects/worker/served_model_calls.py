"""Models that answer at a worker, and how fast they read and write by the answers that were recorded."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from statistics import median

from msgspec import Struct

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import ModelAnswered
from agent_workbench.core.ports.model import Model
from agent_workbench.core.settings.models import SHORT_FORM
from agent_workbench.core.workers import ServedModel

ANSWER_SECONDS = 5.0
"""Longest wait for what an endpoint tells of itself."""
_MOST_ANSWERS = 20
"""Newest answers of a model that its speed is measured by."""
_LEAST_TOKENS = 16
"""Tokens of a prompt or an answer below which its time says little."""


class WorkerEndpoint(Struct, frozen=True):
    """An endpoint of the worker's roles by its name.

    `model` is that of an endpoint that is not asked, because it is paid or serves a file with its first request; its
    recorded answers have `label`.
    """

    name: str
    label: str = ""
    model: str = ""


class ServedModels:
    """Models of a worker's endpoints.

    `looked_at` returns one for inspection, `past` the recorded answers, the oldest first; both block.
    """

    def __init__(
        self,
        endpoints: Sequence[WorkerEndpoint],
        looked_at: Callable[[str], Model | None],
        close: Callable[[], Awaitable[None]],
        past: Callable[[], Iterable[ModelAnswered]] = tuple,
    ) -> None:
        self._endpoints = endpoints
        self._looked_at = looked_at
        self.close = close
        self._past: Callable[[], Iterable[ModelAnswered]] | None = past
        self._read: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_ANSWERS))
        self._wrote: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=_MOST_ANSWERS))
        self._found: tuple[tuple[str, str, str], ...] = ()

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """The models that answered when they were last looked for, with their speed."""
        return tuple(
            ServedModel(model, name, _median(self._read[key]), _median(self._wrote[key]))
            for name, label, model in self._found
            for key in ((label, model),)
        )

    def measure(self, answers: Iterable[ModelAnswered]) -> None:
        """Count answers for the speed of their model, in the order in which they were given."""
        for answer in answers:
            figures, key = answer.figures, (answer.endpoint, answer.model)
            new = figures.prompt_tokens - figures.cached_tokens
            if new >= _LEAST_TOKENS and figures.prompt_seconds > 0:
                self._read[key].append(new / figures.prompt_seconds)
            if figures.answer_tokens >= _LEAST_TOKENS and figures.answer_seconds > 0:
                self._wrote[key].append(figures.tokens_per_second)

    async def find(self) -> None:
        """Ask each endpoint for its model; one that does not answer in time has none. The first call reads the past."""
        past, self._past = self._past, None
        if past is not None:
            self.measure(await asyncio.to_thread(past))
        found = await asyncio.gather(*(self._model_of(each) for each in self._endpoints))
        self._found = tuple(each for each in found if each is not None)

    async def _model_of(self, endpoint: WorkerEndpoint) -> tuple[str, str, str] | None:
        """Return the endpoint's name, its label in recorded answers, and its model."""
        if endpoint.model:
            return endpoint.name, endpoint.label, endpoint.model
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                model = await asyncio.to_thread(self._looked_at, endpoint.name)
                facts = await model.observe() if model is not None else None
        except (WorkbenchError, TimeoutError):
            return None
        if facts is None:
            return None
        label = facts.endpoint if endpoint.name == SHORT_FORM else f"{endpoint.name} ({facts.endpoint})"
        return endpoint.name, label, facts.model


def _median(speeds: Sequence[float]) -> float:
    return round(median(speeds), 1) if speeds else 0.0
