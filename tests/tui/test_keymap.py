"""The keys as data: nothing is bound twice, what is moved is moved everywhere, the document is up to date."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.tui.keymap import Keymap, binding_id, keys_document
from agent_workbench.tui.keys import KEYS, Scope

DOCUMENT = Path(__file__).parents[2] / "docs" / "keys.md"
BARS = (Scope.GATE, Scope.REPLAY)
PANES = (Scope.PLAN, Scope.STEPS, Scope.DIFF, Scope.SCRATCHPAD, Scope.CODE)


async def test_the_document_is_made_from_the_keymap(pytestconfig: pytest.Config) -> None:
    if pytestconfig.option.update_snapshots:
        await asyncio.to_thread(DOCUMENT.write_text, keys_document(Keymap({})), "utf-8")
    assert await asyncio.to_thread(DOCUMENT.read_text, "utf-8") == keys_document(Keymap({})), "run make snapshot-update"


def test_each_key_has_a_name_of_its_own() -> None:
    names = [binding_id(key) for key in KEYS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scope", [*BARS, *PANES])
def test_no_key_means_two_things_in_one_place(scope: Scope) -> None:
    reachable = (scope, *((Scope.EVERYWHERE, Scope.ALWAYS)))
    keys = [each for key in KEYS if key.scope in reachable for each in key.keys.split(",")]
    assert len(set(keys)) == len(keys)


def test_a_moved_key_is_shown_where_the_old_one_was() -> None:
    keymap = Keymap({"approve": "f2", "nonsense": "x", "reject": " "})
    assert keymap.first(Scope.GATE, "approve") == "f2"
    assert keymap.first(Scope.GATE, "reject") == "r"
    assert keymap.unknown == ("nonsense",)
    assert "| `f2` |" in keys_document(keymap)
