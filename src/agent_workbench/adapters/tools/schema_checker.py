"""The port `SchemaValidator`: each question goes to a short-lived process (`schema_process`)."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from agent_workbench.adapters.tools import schema_process
from agent_workbench.core.errors import ToolError
from agent_workbench.system.programs import child_environment

_SECONDS = 10.0
_ANSWER_BYTES = 1_000_000
_MOST_KNOWN = 500


class SchemaChecker:
    """Checks values and schemas. The process gets the variables it needs from `environ`, the user's environment."""

    def __init__(self, environ: Mapping[str, str], *, seconds: float = _SECONDS) -> None:
        self._environ = environ
        self._seconds = seconds
        self._known: dict[bytes, str] = {}

    async def schema_problems(self, schemas: Sequence[str]) -> tuple[str, ...]:
        """Return for each schema why it is invalid, empty where it is valid; raise `ToolError`.

        Each schema is checked once: sources list their tools again for each task, and mostly the same ones.
        """
        digests = [sha256(schema.encode("utf-8", "surrogatepass")).digest() for schema in schemas]
        new = {digest: schema for digest, schema in zip(digests, schemas, strict=True) if digest not in self._known}
        if new:
            problems = await self._ask([(schema, None) for schema in new.values()])
            self._known |= dict(zip(new, problems, strict=True))
        found = tuple(self._known[digest] for digest in digests)
        for oldest in list(self._known)[:-_MOST_KNOWN]:
            del self._known[oldest]
        return found

    async def problem(self, schema: str, value: str) -> str:
        """Return why a JSON value does not fit a valid schema, empty if it fits; raise `ToolError`."""
        (found,) = await self._ask([(schema, value)])
        return found

    async def _ask(self, pairs: Sequence[tuple[str, str | None]]) -> tuple[str, ...]:
        process = await self._started()
        try:
            async with asyncio.timeout(self._seconds):
                answer, _ = await process.communicate(json.dumps(pairs).encode())
        except TimeoutError:
            answer = b""
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        problems = _problems(answer[:_ANSWER_BYTES])
        if len(problems) != len(pairs):
            raise ToolError(
                f"the arguments could not be checked against their schema within {self._seconds:g} s and 1 GB",
                advice="the schema is too costly to check; use another tool",
            )
        return problems

    async def _started(self) -> asyncio.subprocess.Process:
        paths = os.pathsep.join(path for path in sys.path if Path(path).is_absolute())
        # `-P`: the current folder may hold modules that pass for ours.
        argv = (sys.executable, "-P", "-m", schema_process.__name__)
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={**child_environment(self._environ), "PYTHONPATH": paths},
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"the check of arguments could not be started: {error}") from error


def _problems(answer: bytes) -> tuple[str, ...]:
    try:
        found = json.loads(answer)
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
