"""llama.cpp server that the workbench starts at the first request, and stops when it ends."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.http_client.backoff import OnStatus
from agent_workbench.adapters.llama_cpp.http_client.client import LlamaCppModel, say_nothing
from agent_workbench.adapters.llama_cpp.http_client.token_counts import Token
from agent_workbench.adapters.llama_cpp.local_models.model_file import read_model_file
from agent_workbench.adapters.llama_cpp.server.command import ServerCommand, server_command
from agent_workbench.adapters.llama_cpp.server.exit_reason import exit_error
from agent_workbench.adapters.llama_cpp.server.log import ServerLog
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ModelUnavailable, ShellError
from agent_workbench.core.local_models.server_options import ServerOptions, server_options
from agent_workbench.core.model import AnswerEnd, AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.plan.estimates import Complexity
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.queue.workers import MachineResources
from agent_workbench.core.settings.models import ServingSettings
from agent_workbench.system.processes import SupervisedProcess, spawn

# How builds of llama.cpp, old and new, say where they listen.
_ADDRESS = re.compile(r"listening on (http://[^\s,]+)|listening, hostname: (?P<host>[^,\s]+), port: (?P<port>\d+)")
_START_SECONDS = 600.0
ENDPOINT = "embedded llama.cpp"
_STATUS_SECONDS = 1.0
_LAST_LINES = 5
_READ_BYTES = 65536
_ENDED_SECONDS = 2.0


class EmbeddedServer:
    """llama.cpp's server for the GGUF file `model`, with a random API key and its output in `log`.

    What `serving` leaves open is computed for `machine` at each start. Of `environ` the server gets what it may need.
    With `embeddings` it serves `/v1/embeddings` in place of answers.
    """

    def __init__(
        self,
        model: Path,
        *,
        log: Path,
        environ: Mapping[str, str],
        serving: ServingSettings | None = None,
        machine: Machine | None = None,
        on_status: OnStatus = say_nothing,
        start_seconds: float = _START_SECONDS,
        embeddings: bool = False,
    ) -> None:
        self._model = model
        self._log = ServerLog(log)
        self._environ = environ
        self._serving = serving or ServingSettings()
        self._machine = machine
        self._on_status = on_status
        self._start_seconds = start_seconds
        self._embeddings = embeddings
        self._options = ServerOptions()
        self._process: SupervisedProcess | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def options(self) -> ServerOptions:
        """Options of the last start, with the reason of each."""
        return self._options

    def compute_options(self) -> ServerOptions:
        """Return the options for a start now. Blocks; raises `ModelUnavailable` for a file that is no model."""
        file = read_model_file(self._model.expanduser().absolute())
        if self._machine is not None and self._serving.server:
            self._machine.find_gpus()
        resources = self._machine.resources() if self._machine is not None else MachineResources()
        return server_options(file.facts, file.size, resources, self._serving)

    @property
    def running(self) -> bool:
        """True if the server was started and has not ended."""
        return self._reading is not None and not self._reading.done()

    @property
    def pid(self) -> int:
        """The server's process id, 0 before the start."""
        return self._process.pid if self._process else 0

    async def start(self) -> tuple[str, str]:
        """Start the server and return its address and key once it listens; raise `ModelUnavailable`."""
        await self.stop()
        key = secrets.token_urlsafe(32)
        command = await asyncio.to_thread(self._command, key)
        address: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        try:
            self._process = await spawn(
                command.argv, folder=str(self._log.path.parent), environment=command.environment, grace_seconds=0.5
            )
        except ShellError as error:
            raise ModelUnavailable(f"the model server could not be started: {error}", advice=error.advice) from error
        self._reading = in_background(self._read(self._process, address))
        try:
            return await self._listening(address), key
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server and its children, if there are any."""
        process, self._process = self._process, None
        if process:
            await process.stop()
        if self._reading:
            await self._reading

    async def death(self) -> ModelUnavailable | None:
        """Return why the server ended, or None if it still runs after two seconds."""
        if self._reading is None:
            return None
        await asyncio.wait({self._reading}, timeout=_ENDED_SECONDS)
        return await self.ended() if self._reading.done() else None

    async def ended(self) -> ModelUnavailable:
        """Wait until the server ends, and return why it did."""
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return ModelUnavailable("the model server does not run", advice="start it")
        await asyncio.wait({reading})
        if process is not self._process:
            return ModelUnavailable("the model server was stopped", advice="start it again")
        return exit_error(await process.wait(), self._log.last_lines(_LAST_LINES), self._log.path)

    def _command(self, key: str) -> ServerCommand:
        model = self._model.expanduser().absolute()
        self._log.path.parent.mkdir(parents=True, exist_ok=True)
        self._options = self.compute_options()
        return server_command(
            model,
            options=self._options,
            server=self._serving.server,
            api_key=key,
            environ=self._environ,
            embeddings=self._embeddings,
        )

    async def _read(self, process: SupervisedProcess, address: asyncio.Future[str | None]) -> None:
        """Log the output until the server ends; the first line with an address resolves `address`."""
        while data := await process.read(_READ_BYTES):
            for line in await self._log.add(data):
                found = _ADDRESS.search(line)
                if found and not address.done():
                    address.set_result(found[1] or f"http://{found['host']}:{found['port']}")
        if not address.done():
            address.set_result(None)

    async def _listening(self, address: asyncio.Future[str | None]) -> str:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            await asyncio.wait({address}, timeout=_STATUS_SECONDS)
            if address.done() and (url := address.result()):
                return url
            if address.done() and (ended := await self.death()):
                raise ended
            seconds = loop.time() - begun
            if seconds > self._start_seconds:
                raise ModelUnavailable(
                    f"the model server did not listen within {self._start_seconds:.0f} s",
                    advice=f"check its log: {self._log.path}",
                )
            self._on_status(f"the model server loads {self._model.name} ({seconds:.0f} s)")


class EmbeddedModel:
    """The port `Model` on our own server, started by the first request and again after a crash."""

    def __init__(self, server: EmbeddedServer, *, model_name: str = "", on_status: OnStatus = say_nothing) -> None:
        self._server = server
        self._model_name = model_name
        self._on_status = on_status
        self._client: LlamaCppModel | None = None
        self._starting = asyncio.Lock()

    async def observe(
        self, purpose: Purpose = Purpose.EXECUTOR, complexity: Complexity = Complexity.SIMPLE
    ) -> ModelFacts:
        client = await self._started()
        try:
            facts = await client.observe()
        except ModelUnavailable as lost:
            raise await self._explained(lost) from lost
        # The port changes with every start and means nothing to a reader.
        return replace(facts, endpoint=ENDPOINT)

    async def answer(self, request: ModelRequest) -> AsyncGenerator[AnswerItem]:
        client = await self._started()
        try:
            async with contextlib.aclosing(client.answer(request)) as items:
                async for item in items:
                    yield replace(item, endpoint=ENDPOINT) if isinstance(item, AnswerEnd) else item
        except ModelUnavailable as lost:
            raise await self._explained(lost) from lost

    async def count_tokens(self, texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
        client = await self._started()
        try:
            return await client.count_tokens(texts, purpose)
        except ModelUnavailable as lost:
            raise await self._explained(lost) from lost

    async def tokens_of(self, text: str) -> tuple[Token, ...]:
        """Return the tokens of a text, empty if the server does not list them; raise `ModelError`."""
        client = await self._started()
        try:
            return await client.tokens_of(text)
        except ModelUnavailable as lost:
            raise await self._explained(lost) from lost

    async def close(self) -> None:
        client, self._client = self._client, None
        if client:
            await client.close()
        await self._server.stop()

    async def _started(self) -> LlamaCppModel:
        async with self._starting:
            if self._client is None or not self._server.running:
                await self.close()
                url, key = await self._server.start()
                self._client = LlamaCppModel(url, api_key=key, model_name=self._model_name, on_status=self._on_status)
            return self._client

    async def _explained(self, lost: ModelUnavailable) -> ModelUnavailable:
        """Return why the server ended, if it did; a broken connection alone does not tell."""
        death = await self._server.death()
        return ModelUnavailable(str(death), advice=death.advice, partial=lost.partial) if death else lost
