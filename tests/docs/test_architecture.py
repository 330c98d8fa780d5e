"""The architecture names modules that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "agent_workbench"


def test_every_module_that_is_named_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)[:`]", text))
    assert len(named) > 30
    assert [each for each in sorted(named) if not (SOURCE / each).exists() and not (ROOT / each).exists()] == []
