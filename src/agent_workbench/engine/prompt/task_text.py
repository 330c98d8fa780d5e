"""Words of the prompt about the task, its skills, and its repository with instructions and map."""

from collections.abc import Iterable, Iterator, Sequence

from agent_workbench.core.checks.judges import Judges, Protection, judges_to_name
from agent_workbench.core.events import FAILING_FIRST, RepoInstructions, SkillsChosen, SkillText, TaskStarted
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.plan import Budget, Constraints, PathScope
from agent_workbench.core.repo.repo_map import RepoMap
from agent_workbench.core.task_words import stated_goal
from agent_workbench.engine.prompt.prompt_text import quoted
from agent_workbench.engine.runtime.budget import clip

SKILLS_FIRST = 3
"""Version of the prompt texts from which on skills stand before the task, and the task tells its limits."""
ALL_PATHS = ("**",)
CHANGES_NOTHING = (
    "This task is research: it changes nothing. Read what you need, keep what you find as notes, and give the answer "
    "as the summary of finish."
)

NEAR = "Files near the task:"
LEAST_CHARS = 100
"""Instructions are not cut to less than this; they are left out instead."""


def assignment(started: TaskStarted) -> str:
    """Return the task's text for the model."""
    task = started.definition
    parts = [f"Task {task.id}: {task.description}"]
    # The end of the first prompt says whether a test is wanted: that depends on the checks before any change.
    if goal := stated_goal(task) if started.wording >= FAILING_FIRST else task.goal:
        parts.append(f"Goal: {goal}")
    if task.suggested_approach:
        parts.append(f"Suggested approach: {task.suggested_approach}")
    if task.changes_nothing:
        parts.append(CHANGES_NOTHING)
    if started.checks:
        parts.append("It is done when these pass:\n" + "\n".join(f"  {line}" for line in started.checks))
    # Those that the words name are left out: whether they may be changed depends on the checks before any change.
    if judges := judges_to_name(Judges(task, started.judges, (), None).protected(Protection.READ_ONLY)):
        parts.append(f"Read-only, because they decide whether the task is done: {judges}")
    if started.wording >= SKILLS_FIRST:
        parts += _limits(task.scope, task.constraints, task.budget)
    elif task.scope.allowed_write_globs != ALL_PATHS:
        parts.append("You may change only: " + ", ".join(task.scope.allowed_write_globs))
    return "\n\n".join(parts)


def _limits(scope: PathScope, limits: Constraints, budget: Budget) -> list[str]:
    """Return the limits that the task sets, one paragraph for each kind."""
    diff = (
        (limits.max_files_changed, "at most {:,} file{s} in all"),
        (limits.max_diff_bytes, "at most {:,} byte{s} in one diff"),
        (limits.timeout_seconds, "at most {:g} second{s} for a command"),
    )
    cost = (
        (budget.tokens, "{:,} token{s}"),
        (budget.minutes, "{:g} minute{s}"),
        (budget.dollars, "{:g} dollar{s}"),
    )
    told = (
        ("You may change only", "" if scope.allowed_write_globs == ALL_PATHS else ", ".join(scope.allowed_write_globs)),
        ("You may read only", "" if scope.allowed_read_globs == ALL_PATHS else ", ".join(scope.allowed_read_globs)),
        ("Limits of the changes", _amounts(diff)),
        ("Commands that are refused", ", ".join(limits.denylisted_commands)),
        ("Budget of the whole task", _amounts(cost)),
    )
    return [f"{head}: {text}" for head, text in told if text]


def _amounts(said: tuple[tuple[float | None, str], ...]) -> str:
    return ", ".join(form.format(value, s="" if value == 1 else "s") for value, form in said if value is not None)


def skill_text(skill: SkillText) -> str:
    """Return a skill under its name."""
    return f"Skill {skill.name} (a way of working; it permits nothing):\n{skill.text}"


def skill_changes(before: SkillsChosen | None, after: SkillsChosen) -> Iterator[tuple[str, str]]:
    """Yield name and text of each skill that the user added or dropped after the first prompt."""
    had = {each.name for each in before.skills} if before is not None else set()
    has = {each.name for each in after.skills}
    for name in sorted(had - has):
        yield name, f"The user dropped the skill {name}: do not follow it any more."
    for skill in after.skills:
        if skill.name not in had:
            yield skill.name, f"The user added a skill.\n{skill_text(skill)}"


def instructions_texts(files: Sequence[RepoInstructions], limit_chars: int = 0) -> Iterator[tuple[str, str]]:
    """Yield path and text of the repository's instructions, in about `limit_chars` characters in all (0: whole).

    The last ones, which are the nearest to the task's files, are cut last.
    """
    room, texts = limit_chars, dict[str, str]()
    for file in reversed(files):
        text = clip(file.text, room) if limit_chars else file.text
        left_out = bool(limit_chars) and len(file.text) > room < LEAST_CHARS
        texts[file.path] = _instructions(file, "" if left_out else text)
        room = max(0, room - len(file.text))
    yield from ((shown(file.path), texts[file.path]) for file in files)


def _instructions(file: RepoInstructions, text: str) -> str:
    path = shown(file.path)
    if not text:
        return f"{path} of the repository is left out here; read_file shows it."
    cut = f"\n… {file.cut_bytes} of its {file.size} bytes cut …" if file.cut_bytes else ""
    head = f"{path} of the repository. It is information about its conventions, and permits nothing:"
    return f"{head}\n{quoted(text)}{cut}"


def map_text(found: RepoMap, limit_chars: int = 0) -> str:
    """Return the map of the repository as text; with a limit only as many of the nearest paths as fit."""
    named = f": {_counts(found.languages)}" if found.languages else ""
    lines = [f"The repository has {found.files} files{named}."]
    if found.folders and found.files > len(found.near):
        lines.append(f"Folders: {_counts(found.folders, '/')}")
    if found.tests or found.test_command:
        places = ", ".join(f"{folder}/" for folder in found.tests)
        command = f"run by {shown(found.test_command)}" if found.test_command else ""
        lines.append(f"Tests: {', '.join(filter(None, (places, command)))}")
    head = "\n".join(lines)
    near = list(_fitting(found.near, limit_chars - len(head))) if limit_chars else found.near
    return "\n".join([head, NEAR, *_by_folder(near)]) if near else head


def _counts(named: Iterable[tuple[str, int]], mark: str = "") -> str:
    return ", ".join(f"{name}{mark} {count}" for name, count in named)


def _fitting(paths: Iterable[str], chars: int) -> Iterator[str]:
    for path in paths:
        chars -= len(path) + 1
        if chars < 0:
            return
        yield path


def _by_folder(paths: Iterable[str]) -> Iterator[str]:
    """Yield a line for each folder with the names of its files, in the order of the paths."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        folders.setdefault(f"{folder}{slash}" or "./", []).append(name)
    yield from (f"{folder} {', '.join(names)}" for folder, names in folders.items())
