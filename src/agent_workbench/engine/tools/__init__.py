"""The tools: every module here that holds a `TOOL` is one."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from agent_workbench.engine.tools.tool import Tool


@cache
def all_tools() -> Mapping[str, Tool]:
    """Return every tool by name, the workbench's own included. The first call blocks while their modules are read."""
    others = {"arguments", "check_runs", "failures", "tool"}
    names = sorted(found.name for found in iter_modules(__path__) if found.name not in others)
    tools: list[Tool] = [import_module(f"{__name__}.{name}").TOOL for name in names]
    return MappingProxyType({tool.name: tool for tool in tools})


def open_tools(allowed: tuple[str, ...]) -> dict[str, Tool]:
    """Return the tools that a model may call, in the order of `allowed`; unknown names are left out."""
    tools = all_tools()
    return {name: tools[name] for name in allowed if name in tools and tools[name].offered}
