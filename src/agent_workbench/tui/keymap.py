"""Bindings, hints, help and docs/keys.md, made from the keys and from what the user moved."""

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType

from agent_workbench.tui.keys import KEYS, Key, Scope

PRIORITY = frozenset({Scope.ALWAYS})
IN_DIALOGUES = frozenset(
    {
        Scope.ALLOW,
        Scope.RULES,
        Scope.RECEIPT,
        Scope.REVIEW,
        Scope.FILE,
        Scope.TOUR,
        Scope.SESSIONS,
        Scope.PIECE,
        Scope.FIND,
        Scope.SEARCH,
    }
)
NAMES = {
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "exclamation_mark": "!",
}


def binding_id(key: Key) -> str:
    """Return the name under which a key can be moved (`ui.keys` in `.agent.yml`)."""
    shared = sum(each.action == key.action for each in KEYS) > 1
    return f"{key.scope.name.lower()}_{key.action}" if shared else key.action


def bindings(*scopes: Scope) -> list[BindingType]:
    """Return the bindings of these scopes, for the `BINDINGS` of a widget, screen or app."""
    return [
        Binding(key.keys, key.action, key.label, show=False, priority=key.scope in PRIORITY, id=binding_id(key))
        for key in KEYS
        if key.scope in scopes
    ]


def key_name(key: str) -> str:
    """Return how a key is written for people."""
    if key.startswith("ctrl+"):
        rest = key.removeprefix("ctrl+")
        return f"Ctrl-{NAMES.get(rest, rest.upper())}"
    return NAMES.get(key, key)


class Keymap:
    """The keys as they are with what the user moved."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.move(moved)

    def move(self, moved: Mapping[str, str]) -> None:
        """Take other keys by name; names that there are not stand in `unknown` afterwards."""
        known = {binding_id(key) for key in KEYS}
        self.moved = {name: keys for name, keys in moved.items() if name in known and keys.strip()}
        self.unknown = tuple(name for name in moved if name not in known)

    def names(self, key: Key) -> tuple[str, ...]:
        """Return the keys of an action as people write them."""
        keys = self.moved.get(binding_id(key), key.keys)
        return tuple(key_name(each.strip()) for each in keys.split(",") if each.strip())

    def first(self, scope: Scope, action: str) -> str:
        """Return the first key of an action, for a hint."""
        key = next(each for each in KEYS if each.scope is scope and each.action == action)
        return self.names(key)[0]

    def sections(self, focused: Iterable[Scope] = ()) -> list[tuple[Scope, list[Key]]]:
        """Return all keys by scope, those of the focused place first."""
        first = list(focused)
        scopes = [*first, *(scope for scope in Scope if scope not in first)]
        return [(scope, [key for key in KEYS if key.scope is scope]) for scope in scopes]


def keys_document(keymap: Keymap) -> str:
    """Return docs/keys.md."""
    lines = ["# Keys", "", "Made from `tui/keys.py`; do not edit by hand.", ""]
    lines += ["Move a key by its name in `.agent.yml`: `ui: {keys: {approve: f2}}`.", ""]
    for scope, keys in keymap.sections():
        lines += [f"## {scope}", "", "| key | what it does | name |", "| --- | --- | --- |"]
        lines += [f"| {_cell(keymap.names(key))} | {key.says} | `{binding_id(key)}` |" for key in keys]
        lines.append("")
    return "\n".join(lines)


def _cell(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
