"""Every place that writes: what is recorded for the user is held to the bounds of a command, and all else has a reason.

A command of the agent may start `agent` (or import us), so each function that writes files, or tells git to, first asks
`check_record`, directly or by what it calls for that. A new module that writes fails here until it does, or until it
says below why nothing is recorded by it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from tests.architecture.source_tree import PACKAGE, Module, expect_none, modules

# Calls that ask `check_record`, each of which is tested by itself below.
GUARDS = {"check_record", "write_atomically", "make_directories", "acquire", "FileLock", "AppendOnlyFile"}
# So does `Plumbing`, when it is told to run one of these; test_command_bounds tries them.
GIT_EFFECTS = {"update-ref", "update-index", "read-tree", "checkout-index", "worktree"}
CACHE = "a cache: it can be rebuilt, and decides nothing"
SCRATCH = "a temporary folder, or one of a command"
WORKSPACE = "files of a workspace, under the lock of its task, which is a `FileLock`"
NULL = "the null device"
FREE = {
    "subjects.audit.file_adapter": CACHE,
    "adapters.retrieval.cache_folder": CACHE,
    "adapters.retrieval.index.chunk_cache": CACHE,
    "adapters.retrieval.index.workspace_index": CACHE,
    "adapters.git.folder_content": SCRATCH,
    "subjects.hooks_adapter": SCRATCH,
    "subjects.playbooks_adapter": SCRATCH,
    "adapters.git.working_trees.merge:refusal": SCRATCH,
    "adapters.git.working_trees.merge_result": SCRATCH,
    "adapters.git.working_trees.checkout_files": SCRATCH,
    "adapters.shell.shell": SCRATCH,
    "adapters.ssh_signatures": SCRATCH,
    "subjects.skills.tools_adapter": SCRATCH,
    "system.editor": SCRATCH,
    "adapters.git.folders": WORKSPACE,
    "adapters.git.tree_writer": WORKSPACE,
    "adapters.git.write_transaction": WORKSPACE,
    "adapters.git.working_trees.lifecycle": WORKSPACE,
    "adapters.llama_cpp.embedded_server": "a log",
    "subjects.worker.verb": "a log, where its user says",
    "cli.output": NULL,
    "adapters.language_client": NULL,
    "subjects.mcp_client.process_adapter": NULL,
    "system.supervisor": NULL,
    "system.folder_trees": "removes what its caller names, which is looked at here by that call",
    "subjects.queue.records_adapter:release": "a lock that it holds",
    "subjects.queue.worker_files_adapter:end": "a lock that it holds, and the state beside it",
    "adapters.shell.environment:_named": "a link to the interpreter of commands",
    "system.processes": "the output of a server of ours",
}


class Function(Struct):
    """A function of a module by its name: lines that write, names it uses, and whether it asks first."""

    writes: list[int] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    guarded: bool = False


def functions_of(tree: ast.AST) -> dict[str, Function]:
    """Return the functions and methods; what is inside of one is a part of it, and one name is one function."""
    found: dict[str, Function] = {}

    def visit(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            named = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else ""
            visit(child, inside or named)
            if not inside:
                continue
            function = found.setdefault(inside, Function())
            if isinstance(child, ast.Name | ast.Attribute):
                function.uses.add(name_of(child))
            if isinstance(child, ast.Call):
                function.guarded |= asks(child)
                if writes(child):
                    function.writes.append(child.lineno)

    visit(tree, "")
    return found


def asks(call: ast.Call) -> bool:
    """Return True for a call that asks `check_record`."""
    first = call.args[0] if call.args else None
    git = name_of(call.func) in {"run", "attempt"} and isinstance(first, ast.Constant) and first.value in GIT_EFFECTS
    return name_of(call.func) in GUARDS or (git and all(each.arg != "index" for each in call.keywords))


def name_of(node: ast.AST) -> str:
    """Return the last part of a dotted name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


OPENING = {"open", "fdopen", "open_regular"}
MOVING = {"rename", "replace"}
OF_OS = {"link", "rename", "replace", "symlink", "unlink", "remove", "truncate"}
OF_SHUTIL = {"copyfile", "copy", "copy2", "copytree", "move", "rmtree"}
OF_PATHS = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "unlink", "remove_tree"}


def writes(call: ast.Call) -> bool:
    """Return True for a call that makes, changes, moves or removes a file."""
    name, owner = name_of(call.func), call.func.value if isinstance(call.func, ast.Attribute) else None
    of = owner.id if isinstance(owner, ast.Name) else ""
    if name in OPENING:
        return _opens_for_writing(call, of)
    if of == "shutil":
        return name in OF_SHUTIL
    if of == "os":
        return name in OF_OS
    if name in MOVING:
        return owner is not None and len(call.args) == 1 and not call.keywords
    return name in OF_PATHS or (of, name) == ("sqlite3", "connect")


def _opens_for_writing(call: ast.Call, of: str) -> bool:
    """Return True for a mode of writing, flags of writing, and flags that a variable holds."""
    arguments = [*call.args, *(each.value for each in call.keywords)]
    modes = [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if of != "os" and any(len(mode) < 4 and (mode[:1] in "wxa" or "+" in mode) for mode in modes if mode):
        return True
    flags = {name_of(node) for each in arguments for node in ast.walk(each)}
    return bool(flags & {"O_CREAT", "O_WRONLY", "O_RDWR", "flags"}) and name_of(call.func) != "fdopen"


def unguarded(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the function and place of each write though neither the function nor all its callers in the module ask.

    A function asks too if it calls one of the module that does, and a method if it takes an object that asked.
    """
    functions = functions_of(module.tree)
    asking = {name for name, function in functions.items() if function.guarded}

    def is_guarded(name: str, seen: frozenset[str] = frozenset()) -> bool:
        if name in asking or functions[name].uses & asking or ("__init__" in asking and not name.startswith("_")):
            return True
        callers = [each for each, other in functions.items() if name in other.uses and each != name]
        private = name.startswith("_") and not name.endswith("__")
        return private and bool(callers) and all(each in seen or is_guarded(each, seen | {name}) for each in callers)

    for name, function in functions.items():
        if function.writes and not is_guarded(name):
            yield from ((name, f"{module.where}:{line}: {name}") for line in function.writes)


def test_whatever_writes_asks_first_or_records_nothing() -> None:
    found = [
        (module.name.removeprefix(f"{PACKAGE}."), name, where)
        for module in modules()
        for name, where in unguarded(module)
    ]
    expect_none(where for module, name, where in found if not FREE.keys() & {module, f"{module}:{name}"})
    writing = {each for module, name, _ in found for each in (module, f"{module}:{name}")}
    assert FREE.keys() - writing == set(), "a reason for what writes no more"


def test_a_place_that_does_not_ask_is_found(tmp_path: Path) -> None:
    path = tmp_path / "src" / PACKAGE / "new.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "def store(path, text):\n    check_record(path)\n    _put(path, text)\n\n"
        "def _put(path, text):\n    path.write_text(text)\n\n"
        "def keep(path):\n    path.with_name('x').replace(path)\n    'a'.replace('a', 'b')\n\n"
        "class Kept:\n    def drop(self):\n        self._drop()\n\n    def _drop(self):\n        self.path.unlink()\n"
    )
    assert [name for name, _ in unguarded(Module(path, tmp_path))] == ["keep", "_drop"]
