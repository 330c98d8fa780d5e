"""Render the templates of a new role and its playbook; values come as a JSON object, the texts leave as one."""

import json
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def main() -> int:
    """Print the text of each template by its name without `.j2`."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=False,  # noqa: S701 - YAML, not HTML
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    values = json.load(sys.stdin)
    names = sorted(path.name for path in TEMPLATES.glob("*.j2"))
    json.dump({name.removesuffix(".j2"): environment.get_template(name).render(values) for name in names}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
