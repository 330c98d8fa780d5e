"""A source of tools that speaks with a real process (`tool_server.py`) in lines of JSON."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_workbench.core.errors import ToolError
from agent_workbench.core.ports.tools import SourceResult
from agent_workbench.core.ports.workspace import OnOutput
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.spec import ToolSpec

_SERVER = str(Path(__file__).with_name("tool_server.py"))


class LineTools:
    """Tools of the process, listed in the file `tools`; satisfies `core.ports.tools.ToolSource`."""

    def __init__(self, name: str, tools: Path) -> None:
        self.name = name
        self.calls: list[tuple[str, str]] = []
        self.lists = 0
        self._tools = tools
        self._process: asyncio.subprocess.Process | None = None

    async def list_tools(self) -> Sequence[ToolSpec]:
        self.lists += 1
        listed = await self._ask({"ask": "list"})
        assert isinstance(listed, list)
        return tuple(
            ToolSpec(
                each["name"],
                each["summary"],
                Permission(each["permission"]),
                each["schema"] if isinstance(each["schema"], str) else json.dumps(each["schema"]),
                each.get("source", self.name),
                tuple(each.get("hints", ())),
            )
            for each in listed
        )

    async def obstacle(self, tool: str, arguments: str) -> str:
        return ""

    async def call(self, tool: str, arguments: str, on_output: OnOutput) -> SourceResult:
        self.calls.append((tool, arguments))
        answer = await self._ask({"ask": "call", "tool": tool, "arguments": json.loads(arguments)})
        assert isinstance(answer, dict)
        return SourceResult(answer["text"], answer["failed"])

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(self, request: Mapping[str, object]) -> object:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _SERVER, str(self._tools)), stdin=pipe, stdout=pipe, limit=20_000_000
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            raise ToolError(f"{self.name} ended with exit code {self._process.returncode}")
        return json.loads(line)
