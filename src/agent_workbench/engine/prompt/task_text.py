"""Words of the prompt about the task: its assignment, and the skills that it is done with."""

from collections.abc import Iterator

from agent_workbench.core.checks.judges import Judges, Protection, judges_to_name
from agent_workbench.core.events import FAILING_FIRST, SkillsChosen, SkillText, TaskStarted
from agent_workbench.core.plan import Budget, Constraints, PathScope
from agent_workbench.core.plan.task_words import stated_goal

SKILLS_FIRST = 3
"""Version of the prompt texts from which on skills stand before the task, and the task tells its limits."""
ALL_PATHS = ("**",)
CHANGES_NOTHING = (
    "This task is research: it changes nothing. Read what you need, keep what you find as notes, and give the answer "
    "as the summary of finish."
)


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
