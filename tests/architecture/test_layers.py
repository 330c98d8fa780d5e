"""Each module stands in one layer and imports what its layer may; the table in docs/architecture.md says why."""

from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import PACKAGE, Module, expect_none, layer_of, modules, subject_of

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

MAY_IMPORT = {
    "core": set[str](),
    "views": {"core"},
    "engine": {"core"},
    "system": {"core"},
    "ranking": {"core"},
    "config": {"core", "system"},
    "adapters": {"core", "system", "ranking"},
    "tui": {"core", "views"},
    "bootstrap": {"core", "views", "engine", "adapters", "config", "system", "ranking"},
    "api": {"core", "views", "engine", "adapters", "config", "system", "tui", "bootstrap"},
    "http_server": {"core"},
    "server_process": {"core", "api"},
    "mcp": {"core", "views", "api", "http_server", "server_process"},
    "acp": {"core", "views", "api", "server_process"},
    "cli": {"core", "views", "tui", "api", "mcp", "acp", "http_server", "server_process"},
    "__main__": {"cli", "system"},
    PACKAGE: {"core", "api"},
}
# What every subject stands on.
WITHOUT_SUBJECTS = {"core", "engine", "adapters", "config", "system", "ranking"}


def _unit(name: str) -> str:
    """Return the adapter that a module is a part of, by the first word of its name: adapters do not know each other."""
    return name.removeprefix(f"{PACKAGE}.adapters.").partition(".")[0].partition("_")[0]


def _faults(module: Module, known: set[str]) -> Iterator[str]:
    layer, name = layer_of(module.name), module.name
    if layer not in MAY_IMPORT:
        yield f"{module.where}: the layer {layer!r} is in no table"
        return
    for imported in module.imports():
        other = imported.module
        if other.partition(".")[0] != PACKAGE or other == name:
            continue
        if other not in known:
            yield f"{module.where}:{imported.line}: there is no {other}"
            continue
        below = layer_of(other)
        at = f"{module.where}:{imported.line}: {layer} imports {other}"
        if below not in {layer, *MAY_IMPORT[layer]}:
            yield f"{at} of the layer {below}"
        elif below == layer == "adapters" and _unit(other) != _unit(name):
            yield f"{at}, another adapter"
        elif subject_of(other) and not subject_of(name) and layer in WITHOUT_SUBJECTS:
            yield f"{at}, a subject"


def test_each_module_imports_what_its_layer_may() -> None:
    known = {module.name for module in modules()}
    expect_none(line for module in modules() for line in _faults(module, known))


def test_a_subject_is_loaded_where_it_is_needed() -> None:
    """So the folder of any may be missing: `tests/e2e/test_walls.py` takes them away."""
    expect_none(
        f"{module.where}:{imported.line}: {imported.module} is loaded with the module"
        for module in modules()
        if not subject_of(module.name)
        for imported in module.imports()
        if imported.at_module_level and subject_of(imported.module)
    )


def test_the_table_has_no_circle() -> None:
    """So no module reaches, through others, a layer that it may not import."""
    left = {layer: set(below) for layer, below in MAY_IMPORT.items()}
    while lowest := {layer for layer, below in left.items() if not below}:
        left = {layer: below - lowest for layer, below in left.items() if layer not in lowest}
    assert not left


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("core.patch.values", "core"),
        ("subjects.inbox.calls", "api"),
        ("subjects.queue.worker_files_adapter", "adapters"),
        ("subjects.forge.github_adapter", "adapters"),
        ("subjects.forge.issues", "core"),
        ("subjects.forge", "core"),
        ("subjects.hooks_adapter", "adapters"),
    ],
)
def test_the_name_of_a_module_says_its_layer(name: str, layer: str) -> None:
    assert layer_of(f"{PACKAGE}.{name}") == layer


def test_the_name_of_a_module_says_its_subject() -> None:
    names = ("subjects.forge", "subjects.mcp_client.calls", "subjects.mcp_client", "subjects.playbooks_search_adapter")
    assert [subject_of(f"{PACKAGE}.{name}") for name in (*names, "subjects", "core.inbox")] == [
        *("forge", "mcp_client", "mcp_client", "playbooks", "", "")
    ]
