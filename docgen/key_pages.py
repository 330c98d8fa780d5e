"""Tables of the keys of the screen."""

from agent_workbench.tui.keys import Keymap, Scope, binding_id, keys_of
from docgen.markdown import code, table


def keys() -> str:
    """Return a section with a table for each part of the screen."""
    keymap, sections = Keymap({}), []
    for scope in Scope:
        rows = ((", ".join(map(code, keymap.names(key))), key.help, code(binding_id(key))) for key in keys_of(scope))
        sections += [f"## {scope}", table(("key", "what it does", "name"), rows)]
    return "\n\n".join(sections)
