"""How long the catalogue of skills takes: a listing, the choice for a task, and a skill of a megabyte."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.core.settings import SkillSettings
from agent_workbench.core.skills import SkillQuery
from agent_workbench.engine.task.skill_choice import estimate_tokens, pick_skills
from agent_workbench.subjects.skills.folder_adapter import SkillFolders
from bench.figures import Figure, milliseconds, seconds_of

SUBJECTS = ("yaml", "python", "invoice", "database", "chart", "release", "table", "parser", "network", "theme")
BODY_CHARS = 1_600
LARGE_BYTES = 1_000_000
COMMAND = (sys.executable, "-m", "agent_workbench", "skills")
TASK = "Validate the invoice table that the parser reads, and raise an error for a missing price"


def measure(skills: int = 100, rounds: int = 7) -> list[Figure]:
    """Return medians over `rounds` in a repository with so many skills."""
    with _repository(skills) as root:

        def fresh() -> SkillFolders:
            return SkillFolders(root, SkillSettings())

        query = SkillQuery(words=TASK, languages=("python",), paths=("src/invoice.py",))

        def choose() -> None:
            choice = asyncio.run(pick_skills(fresh(), query, estimate_tokens))
            assert choice.skills

        def show() -> None:
            assert len(asyncio.run(fresh().body("large"))) > LARGE_BYTES / 2

        def run(*arguments: str) -> None:
            subprocess.run((*COMMAND, *arguments), cwd=root, check=True, capture_output=True)

        return [
            milliseconds(f"list {skills} skills", seconds_of(lambda: asyncio.run(fresh().list()), rounds), "< 1000"),
            milliseconds(f"choose among {skills} skills", seconds_of(choose, rounds), "< 100"),
            milliseconds("read a skill of 1 MB", seconds_of(show, rounds), "< 500"),
            milliseconds("agent skills check --json", seconds_of(lambda: run("check", "--json"), rounds), "< 1000"),
        ]


@contextmanager
def _repository(skills: int) -> Iterator[Path]:
    """Yield a repository with these skills, and a large one beside them that no task chooses."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(("git", "init", "-q", folder), check=True)
        for number in range(skills - 1):
            subject = SUBJECTS[number % len(SUBJECTS)]
            _write(root, f"{subject}-{number}", subject, "Do it well, and test it.\n" * (BODY_CHARS // 25))
        _write(root, "large", "nothing", "x" * 79 + "\n", times=LARGE_BYTES // 80)
        yield root


def _write(root: Path, name: str, subject: str, body: str, times: int = 1) -> None:
    file = root / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    head = f"name: {name}\ndescription: How to work on a {subject} in this project, step by step.\n"
    metadata = f"metadata:\n  domains: [{subject}]\n  languages: [any]\n  patterns: [{subject}, validate, {name}]\n"
    file.write_text(f"---\n{head}{metadata}---\n" + body * times)
