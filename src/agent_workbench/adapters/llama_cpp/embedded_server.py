"""llama.cpp server of the workbench: its command line, start at the first request, log, and reason of its end."""

import asyncio
import contextlib
import os
import re
import secrets
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.gguf_files import read_model_file
from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel, say_nothing
from agent_workbench.adapters.llama_cpp.token_counts import Token
from agent_workbench.adapters.llama_cpp.turns import OnStatus
from agent_workbench.adapters.llama_cpp.xllamacpp_server import API_KEY_VARIABLE
from agent_workbench.core.background import in_background
from agent_workbench.core.errors import ModelUnavailable, ShellError
from agent_workbench.core.local_models import ServerOptions, server_options
from agent_workbench.core.model import AnswerEnd, AnswerItem, ModelFacts, ModelRequest, Purpose
from agent_workbench.core.ports.machine import Machine
from agent_workbench.core.settings.models import CacheType, ServingSettings
from agent_workbench.core.task_estimates import Complexity
from agent_workbench.core.workers import MachineResources
from agent_workbench.system.processes import SupervisedProcess, spawn
from agent_workbench.system.programs import child_environment, find_program

# Variables that select and configure graphics cards.
_OF_DEVICES = (
    "GGML_",
    "LLAMA_ARG_",
    "CUDA_",
    "NVIDIA_",
    "HIP_",
    "HSA_",
    "ROCR_",
    "VK_",
    "OMP_",
    "GOMP_",
)
# Threads that wait for each other spin for some microseconds, and then sleep. Sleeping at once takes half of the speed
# of a quiet machine; where others want the cores too, one that spins takes its turn from the thread it waits for.
_WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
_PACKAGE_FOLDER = Path(__file__).resolve().parents[3]

# How builds of llama.cpp, old and new, say where they listen.
_ADDRESS = re.compile(r"listening on (http://[^\s,]+)|listening, hostname: (?P<host>[^,\s]+), port: (?P<port>\d+)")
_START_SECONDS = 600.0
ENDPOINT = "embedded llama.cpp"
_STATUS_SECONDS = 1.0
_LAST_LINES = 5
_READ_BYTES = 65536
_ENDED_SECONDS = 2.0

_OWN_SERVER = "set model.server to a llama-server of your own, or model.url to the address of one that runs"
_KNOWN = (
    (r"libgomp", "install the OpenMP runtime, on Debian and Ubuntu with: apt-get install libgomp1"),
    (r"No module named '?xllamacpp", f"there is no built-in llama.cpp for this machine: {_OWN_SERVER}"),
    (r"failed to allocate|unable to allocate|out of memory|bad_alloc", "take a smaller model or context"),
    (
        r"unknown (model )?architecture|failed to load model|error loading model",
        "the GGUF file may not be whole, or too new for this llama.cpp",
    ),
    (r"invalid argument|unrecognized", "set model.server to a llama-server; this program has other options"),
)

_FILE_BYTES = 2_000_000
_LINES = 30
_LINE_LENGTH = 400


class ServerCommand(Struct, frozen=True):
    """A command line without secrets, and the environment with the API key."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


def server_command(
    model: Path,
    *,
    options: ServerOptions,
    server: str,
    api_key: str,
    environ: Mapping[str, str],
    embeddings: bool = False,
) -> ServerCommand:
    """Return how to serve `model` on a free port of 127.0.0.1, by the binary `server` or (empty) by what we bring.

    With `embeddings` it serves vectors of texts that have at most as many tokens as the context, in place of answers.
    Raises `ModelUnavailable` when there is no such binary.
    """
    environment = child_environment(environ, *_OF_DEVICES)
    if environment.keys().isdisjoint(_WAITING):
        environment = environment | _WAITING
    environment[API_KEY_VARIABLE] = api_key
    # Else a server that aborts has itself looked at by a debugger first, for seconds and a hundred lines.
    environment["GGML_NO_BACKTRACE"] = "1"
    context, cache = str(options.context_tokens), str(options.cache_type)
    if server:
        binary = _binary(server, environ)
        argv = [binary, "-m", str(model), "--host", "127.0.0.1", "--port", "0", "-np", "1", "-c", context]
        # Without an alias the model's name is its whole path, which would get into journals.
        argv += ["--alias", model.name]
        argv += ["-t", str(options.threads)] if options.threads else []
        argv += ["-ngl", str(options.gpu_layers)] if options.gpu_layers is not None else []
        argv += ["-ctk", cache, "-ctv", cache] if options.cache_type is not CacheType.F16 else []
        # A text is embedded in one batch. After each batch of a prompt the server says how much it has read; it
        # computes no more than its default of `-ub` at once anyway.
        argv += ["--embeddings", "-b", context, "-ub", context] if embeddings else ["-b", "512"]
    else:
        # `-P`: modules in the current folder must not replace ours.
        argv = [sys.executable, "-P", "-m", "agent_workbench.adapters.llama_cpp.xllamacpp_server", str(model)]
        argv += ["--context-tokens", context, "--threads", str(options.threads), "--alias", model.name]
        argv += ["--cache-type", cache, "--cache-megabytes", str(options.prompt_cache_bytes >> 20)]
        argv += ["--gpu-layers", str(options.gpu_layers)] if options.gpu_layers is not None else []
        argv += ["--embeddings"] if embeddings else []
        environment |= {"PYTHONPATH": str(_PACKAGE_FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    return ServerCommand(tuple(argv), environment)


def _binary(server: str, environ: Mapping[str, str]) -> str:
    found = find_program(os.path.expanduser(server), environ.get("PATH", ""))  # noqa: PTH111 - a bare name is no path
    if not found:
        raise ModelUnavailable(
            f"the program {server} was not found",
            advice="set model.server (or LLAMA_SERVER) to a llama-server; without it the built-in one is used",
        )
    return found


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


def exit_error(returncode: int, last_lines: Sequence[str], log: Path) -> ModelUnavailable:
    """Return the error for a server that ended with `returncode` (negative: a signal) after it wrote `last_lines`."""
    said = "\n".join(last_lines)
    how = f"by signal {-returncode} ({_name(-returncode)})" if returncode < 0 else f"with exit code {returncode}"
    what = f"the model server ended {how}" + (f"; its last lines:\n{said}" if said else "")
    return ModelUnavailable(what, advice=f"{_advice(returncode, said)} (its log: {log})")


def _advice(returncode: int, said: str) -> str:
    if returncode == -signal.SIGILL:
        return f"this CPU lacks AVX2 or FMA, which the built-in llama.cpp needs: {_OWN_SERVER}"
    for pattern, advice in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            return advice
    if returncode == -signal.SIGKILL:
        return "the machine may have run out of memory: take a smaller model, or lower model.context_tokens"
    return "the next request starts it again"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


class ServerLog:
    """The log at `path`. A full log is moved to `<path>.1`, replacing the one there."""

    def __init__(self, path: Path, *, file_bytes: int = _FILE_BYTES) -> None:
        self.path = path
        self._file_bytes = file_bytes
        self._line = ""
        self._lines: deque[str] = deque(maxlen=_LINES)

    async def add(self, data: bytes) -> tuple[str, ...]:
        """Append output and return the lines that are complete now."""
        *complete, rest = (self._line + data.decode("utf-8", "replace")).split("\n")
        self._line = rest[-_LINE_LENGTH:]
        lines = tuple(_printable(line) for line in complete)
        self._lines.extend(lines)
        await asyncio.to_thread(self._append, data)
        return lines

    def last_lines(self, count: int) -> tuple[str, ...]:
        """Return the last `count` lines that are not empty."""
        lines = [line for line in (*self._lines, _printable(self._line)) if line]
        return tuple(lines[-count:])

    def _append(self, data: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size + len(data) > self._file_bytes:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write(data)
        except OSError as error:
            # A log that cannot be written must not stop the model; the error is shown with the last lines.
            self._lines.append(f"({self.path} cannot be written: {error.strerror})")


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()[:_LINE_LENGTH]
