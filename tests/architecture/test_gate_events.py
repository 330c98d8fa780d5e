"""Who reads the raw events of the gate: all others read steps, in which `core/state/steps.py` joins these events."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source_tree import PACKAGE, Module, modules

# One worker parses the sources for all of these.
pytestmark = pytest.mark.xdist_group("sources")

GATE_EVENTS = {"ActionProposed", "ProposalReplaced", "ActionDecided", "ActionStarted", "ActionFinished"}
# Where events are defined and folded; the join of them to steps is a fold too.
FOLDS = {f"{PACKAGE}.core.events", f"{PACKAGE}.core.state.steps"}
READERS = {
    "acp.event_updates": "tells an editor each event as it is recorded",
    "adapters.database.shared_opening": "copies the start of an action before its effect",
    "cli.verbs.chat": "prints each event of a chat as it is recorded",
    "core.events.log_lines": "words of one event",
    "core.history.audit_trail": "is stored between two events",
    "core.history.replay_marks": "marks single events",
    "core.history.summaries": "reads the outcomes alone of many sessions",
    "engine.prompt.messages": "grows with the prompt, event by event",
    "engine.prompt.prompt_text": "words of one event for the model",
    "views.record_search": "words of one event",
    "views.event_entries": "shows one event",
    "views.transcript": "grows with the events",
}


def _read(module: Module) -> Iterator[str]:
    """Yield the events that a module matches or tests for. It may record one, and name it as a type."""
    allowed: set[ast.AST] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=func):
                allowed.add(func)
            case ast.AnnAssign(annotation=kind) | ast.arg(annotation=ast.expr() as kind):
                allowed.update(ast.walk(kind))
            case ast.FunctionDef(returns=ast.expr() as kind) | ast.AsyncFunctionDef(returns=ast.expr() as kind):
                allowed.update(ast.walk(kind))
            case _:
                continue
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id in GATE_EVENTS and node not in allowed:
            yield node.id


def test_raw_events_of_the_gate_are_read_where_a_step_does_not_say_it() -> None:
    """The list only goes down: whoever joins events of the gate by their proposal reads steps instead."""
    readers = {module.name for module in modules() if any(_read(module))} - FOLDS
    outside = {name.removeprefix(f"{PACKAGE}.") for name in readers if not name.startswith(f"{PACKAGE}.core.fold.")}
    assert outside == set(READERS)


def test_a_join_of_raw_events_would_be_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / PACKAGE
    package.mkdir(parents=True)
    texts = {
        "matched": "match x:\n    case ActionProposed(proposal=p) | Other():\n        pass\n",
        "tested": "y = isinstance(x, Other | ActionDecided)\n",
        "listed": "KINDS = (Other, ActionFinished)\n",
        "recorded": "def f(x: ActionDecided) -> None:\n    record(ActionStarted(x.proposal_id))\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    found = {name: list(_read(Module(package / f"{name}.py", tmp_path))) for name in texts}
    assert found == {
        "matched": ["ActionProposed"],
        "tested": ["ActionDecided"],
        "listed": ["ActionFinished"],
        "recorded": [],
    }
