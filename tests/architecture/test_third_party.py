"""Which library may be used where, and what no layer but the outermost may do by itself."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain

import pytest

from tests.architecture.source_tree import PACKAGE, ROOT, Import, Module, expect_none, layer_of, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

# The longest matching prefix decides, so that a package inside another may have more, or less, than the one around it.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "views": set(),
    "views.markdown": {"markdown_it"},
    "core.patch": {"unidiff"},
    "engine": set(),
    "adapters": set(),
    "adapters.database": {"procrastinate", "psycopg", "psycopg_pool"},
    "subjects.forge.client_adapter": {"httpx"},
    "adapters.language_client": {"lsprotocol", "pygls"},
    "adapters.language_servers": {"lsprotocol"},
    "adapters.nvml_program": {"pynvml"},
    "adapters.llama_cpp": {"httpx", "numpy", "xllamacpp"},
    "subjects.mcp_client.elicitation_adapter": {"mcp"},
    "subjects.mcp_client.process_adapter": {"mcp", "pydantic"},
    "subjects.mcp_client.sign_in_adapter": {"httpx2", "mcp", "pydantic"},
    "subjects.mcp_client.streams_adapter": {"anyio", "httpx2", "mcp", "pydantic"},
    "subjects.models.hub_adapter": {"httpx"},
    "adapters.retrieval": {"numpy", "tree_sitter"},
    "adapters.retrieval.embedding_client": {"httpx", "numpy"},
    "adapters.retrieval.vector_worker": {"chromadb", "numpy"},
    "subjects.skills.front_matter_adapter": {"yaml"},
    "adapters.schema_process": {"jsonschema", "referencing"},
    "adapters.web": {"aiohttp", "textual_serve"},
    "system": {"platformdirs"},
    "system.proxies": {"socksio"},
    "ranking": {"numpy", "rank_bm25"},
    "config": {"yaml"},
    "tui": {"rich", "textual"},
    "cli": set(),
    "cli.completion": {"argcomplete"},
    "http_server": {"uvicorn"},
    "acp": {"acp", "pydantic"},
    "mcp": {"anyio", "mcp"},
    "bootstrap": set(),
}

# What values are made of, in every layer.
EVERYWHERE = {"msgspec"}

# What pure functions have no use for.
IMPURE = {
    *("ftplib", "glob", "http", "multiprocessing", "random", "secrets", "select", "shutil", "signal", "socket"),
    *("sqlite3", "subprocess", "tempfile", "threading", "time", "urllib", "uuid"),
}
# Standard modules through which a layer would get around its ports.
DENIED: dict[str, set[str]] = {
    "core": IMPURE,
    "views": {*IMPURE, "asyncio"},
    "engine": {
        *("ftplib", "glob", "http", "multiprocessing", "random", "secrets", "shutil", "socket", "sqlite3"),
        *("subprocess", "tempfile", "urllib", "uuid"),
    },
    "tui": {
        *("ftplib", "glob", "http", "multiprocessing", "shutil", "socket", "sqlite3", "subprocess", "tempfile"),
        *("urllib",),
    },
}

# Slow to import, so never imported just because a module of ours is.
NEVER_AT_MODULE_LEVEL = {"chromadb", "xllamacpp"}
# Whatever reads the clock gets it through the port `Clock`, or a replay would differ from what it replays.
CLOCK_CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}


def _rules_for(module: Module, table: dict[str, set[str]]) -> set[str]:
    name = module.name.removeprefix(PACKAGE).removeprefix(".")
    named = [prefix for prefix in table if prefix and (name == prefix or name.startswith(f"{prefix}."))]
    return table[max(named, key=len)] if named else table.get(layer_of(module.name), set())


def _is_grammar(library: str) -> bool:
    return library.startswith("tree_sitter_")


def _is_allowed(imported: Import, module: Module) -> bool:
    if imported.library in {PACKAGE, "__future__", *EVERYWHERE} or imported.library in sys.stdlib_module_names:
        return True
    allowed = _rules_for(module, ALLOWED)
    return imported.library in allowed or (_is_grammar(imported.library) and "tree_sitter" in allowed)


def _violations(module: Module) -> Iterator[str]:
    denied = _rules_for(module, DENIED)
    for imported in module.imports():
        at = f"{module.where}:{imported.line}: {imported.module}"
        if not _is_allowed(imported, module):
            yield f"{at} is not in the allow-list of this package"
        elif imported.library in denied:
            yield f"{at} goes around the ports"
        elif imported.at_module_level and (imported.library in NEVER_AT_MODULE_LEVEL or _is_grammar(imported.library)):
            yield f"{at} is heavy: import it where it is used"


def test_libraries_are_used_only_where_they_are_allowed() -> None:
    expect_none(line for module in modules() for line in _violations(module))


def test_the_imported_libraries_are_the_declared_ones() -> None:
    """What only another library brings may go with its next version, and what nobody imports need not be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *chain.from_iterable(project.get("optional-dependencies", {}).values())]
    declared = {_distribution(line) for line in lines} - {project["name"]}
    providers = packages_distributions()
    imported = {
        imported.library: {_distribution(name) for name in providers.get(imported.library, [imported.library])}
        for module in modules()
        for imported in module.imports()
        if imported.library not in {PACKAGE, *sys.stdlib_module_names}
    }
    expect_none(f"{library} is imported and not declared" for library in imported if not imported[library] & declared)
    unused = declared - set(chain.from_iterable(imported.values()))
    # Grammars are imported by the name of their language.
    expect_none(f"{name} is declared and not imported" for name in unused if not name.startswith("tree-sitter-"))


def _distribution(requirement: str) -> str:
    """Return the name of a distribution in the form in which names are compared."""
    return re.sub(r"[._-]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


@pytest.mark.parametrize("layer", ["core", "engine", "views"])
def test_the_clock_is_read_through_its_port(layer: str) -> None:
    expect_none(
        f"{module.where}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if layer_of(module.name) == layer
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(tuple(CLOCK_CALLS))
    )


@pytest.mark.parametrize("layer", ["core", "tui", "views"])
def test_files_are_not_opened_in(layer: str) -> None:
    expect_none(
        f"{module.where}:{node.lineno}"
        for module in modules()
        if layer_of(module.name) == layer
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id == "open")
            or (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in {"read_bytes", "read_text", "write_bytes", "write_text"}
            )
        )
    )


def test_no_handler_calls_the_one_of_its_base_class() -> None:
    """Textual calls the handlers of all base classes itself, so a handler that does it too runs them twice."""
    expect_none(
        f"{module.where}:{node.lineno}: return, or prevent the default, instead of super().{node.func.attr}()"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "super()"
        and node.func.attr.removeprefix("_").startswith("on_")
        and node.func.attr != "on_event"  # no handler: it looks for them
    )
