"""Ports of the language models behind the endpoints."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan.estimates import Complexity


class Model(Protocol):
    """Language models behind the endpoints of each role."""

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        """Wait until the model for `purpose` is ready and return its facts; raise `ModelError`.

        The `complexity` of the task may decide which endpoint that is.
        """

    def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        """Stream an answer that ends with `AnswerEnd`. Closing the iterator frees the server.

        Where an endpoint may cost money, the choice of the endpoint is the first item.

        Raises `ModelError`; if its `another` is set, the next `observe` finds another endpoint.
        """

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        """Return the exact token count of each text for the model of `purpose`; zeros if it cannot count."""

    async def close(self) -> None:
        """Release the servers; those that the workbench started end."""


class EndpointModels(Protocol):
    """The endpoints of the settings one by one, for questions that choose their own."""

    async def named(self, name: str) -> Model:
        """Return the model of one endpoint, with its price and cap; raise `ConfigError` for an unknown name."""

    async def close(self) -> None:
        """Release the servers that were asked."""
