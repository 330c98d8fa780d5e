"""Ports of the language models behind the endpoints, and of the ledger of their day's cap."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct

from agent_workbench.core.local_models import FoundServer, ListedModel
from agent_workbench.core.model import AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.task_estimates import Complexity


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
    """The endpoints of the settings one by one, for questions that choose their own, and the models of their servers.

    A server is named by one of its endpoints. Those with a price are left out: the price is that of one model.
    """

    async def named(self, name: str, model: str = "") -> Model:
        """Return the model of one endpoint, or another `model` of its server, with its price and cap.

        Raises `ConfigError` for an unknown name.
        """

    async def servers(self) -> tuple[FoundServer, ...]:
        """Return the servers with their models, or why one lists none; within seconds. Loads nothing."""

    async def load(self, endpoint: str, model: str) -> ListedModel:
        """Load a model of a server and return it; raise `ConfigError`, `ModelError`."""

    async def unload(self, endpoint: str, model: str) -> None:
        """Unload a model of a server; raise `ConfigError`, `ModelError`."""

    async def close(self) -> None:
        """Release the servers that were asked."""


class Reservation(Struct, frozen=True):
    """Money set aside for one answer, and its day. `shared` is its number in a ledger that machines share (0: none)."""

    day: str
    endpoint: str
    dollars: float
    shared: int = 0


class SpendingCapReached(Exception):
    """A reservation would exceed the cap. `spent` dollars are already used."""

    def __init__(self, spent: float) -> None:
        super().__init__(f"${spent:.4f} were spent")
        self.spent = spent


class Spending(Protocol):
    """Dollars of each day (UTC) for all sessions that share a cap.

    A reservation counts as spent until it is settled, so that two processes cannot both take the last cent, and a
    crash leaves the worst case counted. Every method raises `StorageError` if the sum is unknown or cannot be written:
    then nothing that costs may be asked.
    """

    async def spent_today(self) -> float:
        """Return today's dollars, reservations included."""

    async def reserve(self, endpoint: str, dollars: float, cap: float) -> Reservation:
        """Set `dollars` aside; raise `SpendingCapReached` if today's sum would exceed `cap`."""

    async def settle(self, reservation: Reservation, dollars: float) -> None:
        """Replace a reservation by the real cost."""
