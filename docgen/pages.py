"""Pages of the documentation, and the generated parts in them.

A part is between `<!-- generated: NAME -->` and `<!-- end of NAME -->`; what is between them is replaced. The name
`json MODULE:CLASS` lists the fields of a struct.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docgen.command_pages import commands
from docgen.event_pages import event_values, events
from docgen.json_tables import json_part
from docgen.key_pages import keys
from docgen.setting_pages import settings
from docgen.tables import decisions, exit_codes, mcp_tools

PAGES = Path(__file__).parents[1] / "docs"
PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "decisions": decisions,
    "event values": event_values,
    "events": events,
    "exit codes": exit_codes,
    "keys": keys,
    "mcp tools": mcp_tools,
    "settings": settings,
}
_PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[^>]+?) -->\n).*?(?P<end><!-- end of (?P=name) -->\n)", re.DOTALL
)


def pages() -> Iterator[Path]:
    """Yield every page."""
    yield from sorted(PAGES.rglob("*.md"))


def parts_of(text: str) -> list[str]:
    """Return the names of the generated parts of a page, in their order."""
    return [match["name"] for match in _PART.finditer(text)]


def filled(text: str) -> str:
    """Return the text of a page with its generated parts made anew."""
    return _PART.sub(lambda match: f"{match['begin']}\n{_made(match['name']).strip()}\n\n{match['end']}", text)


def _made(name: str) -> str:
    kind, _, rest = name.partition(" ")
    return json_part(rest) if kind == "json" else PARTS[name]()
