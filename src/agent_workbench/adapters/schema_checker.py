"""The port `SchemaValidator`: each question goes to a short-lived process (`schema_process`)."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

from agent_workbench.core.errors import ToolError
from agent_workbench.system.programs import child_environment, start_module

_PROCESS = "agent_workbench.adapters.schema_process"
_SECONDS = 10.0
_MOST_COSTLY = 3
TOO_COSTLY = "it could not be checked in the time and memory that is allowed"
_MOST_KNOWN = 500


class SchemaChecker:
    """Checks values and schemas. The process gets the variables it needs from `environ`, the user's environment."""

    def __init__(self, environ: Mapping[str, str], *, seconds: float = _SECONDS) -> None:
        self._environ = environ
        self._seconds = seconds
        self._known: dict[bytes, str] = {}

    async def schema_problems(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """Return for each schema why it is invalid, empty where it is valid; raise `ToolError`.

        Each schema is checked once: sources list their tools again for each task, and mostly the same ones. One that
        uses up the time or memory takes no other away; after a few such ones the rest counts as too costly too.
        """
        digests = [sha256(schema.encode("utf-8", "surrogatepass")).digest() for schema in schemas]
        new = {digest: schema for digest, schema in zip(digests, schemas, strict=True) if digest not in self._known}
        problems: list[str] = []
        costly = 0
        while len(problems) < len(new) and costly < _MOST_COSTLY:
            problems += await self._ask([(schema, None) for schema in tuple(new.values())[len(problems) :]])
            if len(problems) < len(new):
                costly += 1
                problems.append(TOO_COSTLY)
        self._known |= {digest: said for digest, said in zip(new, problems, strict=False) if said != TOO_COSTLY}
        found = tuple(self._known.get(digest, TOO_COSTLY) for digest in digests)
        for oldest in list(self._known)[:-_MOST_KNOWN]:
            del self._known[oldest]
        return found

    async def problem(self, schema: str, value: str) -> str:
        """Return why a JSON value does not fit a valid schema, empty if it fits; raise `ToolError`."""
        found = await self._ask([(schema, value)])
        if not found:
            raise ToolError(
                f"the arguments could not be checked against their schema within {self._seconds:g} s and 1 GB",
                advice="the schema is too costly to check; use another tool",
            )
        return found[0]

    async def _ask(self, pairs: Sequence[tuple[str, str | None]]) -> tuple[str, ...]:
        """Return the problems, fewer than pairs where the time or memory was used up."""
        process = await self._started()
        lines: list[bytes] = []
        try:
            async with asyncio.timeout(self._seconds):
                await _write(process, json.dumps(pairs).encode())
                while process.stdout is not None and (line := await process.stdout.readline()):
                    lines.append(line)
                await process.wait()
        except (TimeoutError, ConnectionError):
            pass
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return tuple(str(json.loads(line)) for line in lines if line.endswith(b"\n"))

    async def _started(self) -> asyncio.subprocess.Process:
        try:
            return await start_module(_PROCESS, child_environment(self._environ))
        except OSError as error:
            raise ToolError(f"the check of arguments could not be started: {error}") from error


async def _write(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is not None:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
