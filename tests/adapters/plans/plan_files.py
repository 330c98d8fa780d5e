"""A plan file in a folder, as the tests of this package use it."""

from pathlib import Path

from agent_workbench.adapters.plans.plan_file import PlanFile
from agent_workbench.config.yaml_parser import compose_text

PATH = "memory/plans/PLAN.yaml"


def plan_file(root: Path, text: str | bytes | None = None) -> PlanFile:
    if text is not None:
        path = root / PATH
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PlanFile(root, PATH, compose_text)


def content(root: Path) -> str:
    return (root / PATH).read_bytes().decode()
