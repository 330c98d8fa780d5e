"""The keys as data: nothing is bound twice, and what is moved is moved everywhere."""

import pytest

from agent_workbench.tui.keys import DIALOG_SCOPES, KEYS, Keymap, Scope, binding_id, reachable
from agent_workbench.tui.screens.help import key_entries

HIDDEN = {Scope.REPLAY: {"home", "end"}}
"""Keys of the bar that stand before those which scroll its pane; `g` and `G` do."""

SAME = {
    **dict.fromkeys(("drop", "revoke", "take back", "unload"), "remove"),
    **dict.fromkeys(("service", "words"), "search"),
    **dict.fromkeys(("next prompt", "view"), "next page"),
    "load": "add",
    "read": "expand",
    "where": "next",
    "where, back": "back",
}
"""Labels of keys that do the same to different things."""


def test_each_key_has_a_name_of_its_own() -> None:
    names = [binding_id(key) for key in KEYS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scope", Scope)
def test_no_key_means_two_things_in_one_place(scope: Scope) -> None:
    keys = [each for key in KEYS if key.scope in reachable(scope) for each in key.keys.split(",")]
    twice = {key for key in keys if keys.count(key) > 1}
    assert twice == HIDDEN.get(scope, set())


def test_a_key_means_the_same_in_every_dialog() -> None:
    told: dict[str, set[str]] = {}
    for key in (key for key in KEYS if key.scope in DIALOG_SCOPES and not key.action.startswith("close")):
        for name in set(key.keys.split(",")) - {"enter"}:
            told.setdefault(name, set()).add(SAME.get(key.label, key.label))
    assert {name: labels for name, labels in told.items() if len(labels) > 1} == {}


@pytest.mark.parametrize("scope", sorted(DIALOG_SCOPES))
def test_escape_closes_every_dialog(scope: Scope) -> None:
    assert [key.action[:5] for key in KEYS if key.scope is scope and "escape" in key.keys.split(",")] == ["close"]


def test_a_key_that_was_moved_onto_another_one_is_told() -> None:
    assert list(Keymap({"approve": "f2"}).troubles()) == []
    assert list(Keymap({"approve": "z"}).troubles()) == ["z means two things: approve and zoom"]
    assert list(Keymap({"expand_all": "a"}).troubles()) == []
    assert list(Keymap({"copy": "f2", "verify_session": "f2"}).troubles()) == [
        "f2 means two things: copy and verify_session"
    ]


def test_help_is_searched_by_words_by_names_and_by_keys() -> None:
    def found(asked: str) -> list[str]:
        return [entry.key.split(".")[1] for entry in key_entries(Keymap({}), Scope, asked)]

    assert len(found("")) == len(KEYS)
    assert found("hunk leave") == ["take_hunk"]
    assert "palette" in found("Ctrl-P")
    assert found("zebra crossing") == []


def test_a_moved_key_is_shown_where_the_old_one_was() -> None:
    keymap = Keymap({"approve": "f2", "nonsense": "x", "reject": " "})
    assert keymap.first(Scope.GATE, "approve") == "f2"
    assert keymap.first(Scope.GATE, "reject") == "r"
    assert keymap.unknown == ("nonsense",)
