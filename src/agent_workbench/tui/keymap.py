"""Keymap: bindings and hints, made from the keys and from the user's changes to them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from textual.binding import Binding, BindingType

from agent_workbench.tui.keys import KEYS, Key, Scope

PRIORITY = frozenset({Scope.ALWAYS})
DIALOG_SCOPES = frozenset(
    {
        Scope.DRAFT,
        Scope.ALLOW,
        Scope.RULES,
        Scope.MODELS,
        Scope.KNOWLEDGE,
        Scope.INBOX,
        Scope.PROGRESS,
        Scope.AUDIT,
        Scope.RECEIPT,
        Scope.REVIEW,
        Scope.FILE,
        Scope.TOUR,
        Scope.SESSIONS,
        Scope.COMPARISON,
        Scope.PIECE,
        Scope.FIND,
        Scope.SEARCH,
        Scope.HELP,
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
    "at": "@",
    "minus": "-",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "exclamation_mark": "!",
}

REPLACED = {f"{name}_item": name for name in ("approve", "reject", "skip")} | {"close_item": "leave"}
"""Names of earlier versions, each with the name of the key that does the same now."""

_USES = Counter(key.action for key in KEYS)


def binding_id(key: Key) -> str:
    """Return the name by which a user changes a key (the setting `ui.keys`)."""
    return f"{key.scope.name.lower()}_{key.action}" if _USES[key.action] > 1 else key.action


def bindings(*scopes: Scope) -> list[BindingType]:
    """Return the bindings of these scopes, for the `BINDINGS` of a widget, screen or app."""
    return [
        Binding(key.keys, key.action, key.label, show=False, priority=key.scope in PRIORITY, id=binding_id(key))
        for key in KEYS
        if key.scope in scopes
    ]


def key_name(key: str) -> str:
    """Return a key as people write it."""
    if key.startswith("ctrl+"):
        rest = key.removeprefix("ctrl+")
        return f"Ctrl-{NAMES.get(rest, rest.upper())}"
    return NAMES.get(key, key)


class Keymap:
    """The keys with the user's changes (`moved`). `unknown` are names of changes that no key has."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.move(moved)

    def move(self, moved: Mapping[str, str]) -> None:
        """Replace the user's changes."""
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

    def troubles(self) -> Iterator[str]:
        """Yield the errors in the user's changes: unknown names, and keys with two meanings in one place."""
        for name in self.unknown:
            instead = f"{REPLACED[name]!r} does the same" if name in REPLACED else "the help (`?`) finds the names"
            yield f"there is no key named {name!r}; {instead}"
        if not self.moved:
            return
        told = set()
        for scope in Scope:
            meant: dict[str, Key] = {}
            for key in (each for each in KEYS if each.scope in reachable(scope)):
                for name in self.names(key):
                    other = meant.setdefault(name, key)
                    both = frozenset({binding_id(key), binding_id(other)})
                    if other is not key and both not in told and not both.isdisjoint(self.moved):
                        told.add(both)
                        yield f"{name} means two things: {' and '.join(sorted(both))}"


def reachable(scope: Scope) -> tuple[Scope, ...]:
    """Return the scopes whose keys work at the same time as those of `scope`, that one first."""
    everywhere = () if scope in DIALOG_SCOPES else (Scope.EVERYWHERE,)
    return tuple(dict.fromkeys((scope, Scope.SCROLL, *everywhere, Scope.ALWAYS)))


def keys_of(scope: Scope) -> list[Key]:
    """Return the keys of a scope, in their order."""
    return [key for key in KEYS if key.scope is scope]
