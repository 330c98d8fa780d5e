"""Prompt of the planner, a pure function of the session's state: rules, goal, repository, and earlier attempts."""

from collections.abc import Iterable, Iterator

from agent_workbench.core.events import PlanSurveyed
from agent_workbench.core.model import Message, Role
from agent_workbench.core.plan import Plan
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.work import PlanAttempt, Planning
from agent_workbench.engine.planning.plan_answer import WITH_INTENTS

VERSION = 2
"""Version of the texts below; `PlanAsked.wording` records it."""
UNLABELLED = 1
"""Version without intent, service and needs: only a fleet, and the choice of a paid endpoint, have a use for these."""
MOST_TASKS = 50

_FIRST_RULES = """\
You break a goal into small tasks for a programmer, in the order in which they are to be done. Each task changes \
little, and one command can check it. Plan from the code that is shown: name the files and functions to change, and \
plan nothing that is there already. A task that changes behaviour adds or changes a test. Answer with one to eight \
tasks and nothing else, each in exactly this form:

Task: <what is to be done, one line>
Goal: <how one sees that it is done, one line>
Approach: <files and functions to change, one line>
Accept: <one shell command that passes then, or nothing>
After: <numbers of the tasks above that must be done first, or nothing>"""
_LABELS = (
    (
        "Goal: <how",
        """\
Intent: <code if it changes files, infra if it changes machines or services, research if it changes nothing>
Service: <the service or part of the product that it is for, in a word, or nothing>
Goal: <how""",
    ),
    (
        "After: <numbers",
        """\
Needs: <what its machine must have, such as gpu 24 (GB), cores 8, model NAME, tag NAME; mostly nothing>
After: <numbers""",
    ),
)


def _with_labels(rules: str) -> str:
    for before, after in _LABELS:
        rules = rules.replace(before, after)
    return rules


RULES = _with_labels(_FIRST_RULES)


CHECK_RULES = """\
You propose one shell command that shows when a task is done: it fails before and passes after. Use what the \
repository has: its test runner on the test files of the code that changes, or on a test file that the task is going \
to add; else a short command that looks at the result. The command runs in the root of the repository, changes \
nothing, needs no network, and ends by itself. Answer with one line and nothing else, in exactly this form:

Accept: <the command>"""


def planner_messages(planning: Planning, plan: Plan) -> tuple[Message, ...]:
    """Return the messages of the next request; it only grows at its end as long as the survey stays the same."""
    survey = planning.survey or PlanSurveyed()
    asked = "\n\n".join(_material(planning.goal, survey, plan))
    plan_rules = RULES if planning.wording >= WITH_INTENTS else _FIRST_RULES
    rules, reply = (CHECK_RULES, _check_reply) if planning.check_for else (plan_rules, _reply)
    messages = [Message(Role.SYSTEM, rules), Message(Role.USER, asked)]
    for attempt in planning.attempts:
        messages += (Message(Role.ASSISTANT, attempt.answer or "(no answer)"), Message(Role.USER, reply(attempt)))
    return tuple(messages)


def _material(goal: str, survey: PlanSurveyed, plan: Plan) -> Iterator[str]:
    yield f"Goal: {goal}"
    if survey.commands:
        yield _listed("Commands that check this repository:", survey.commands)
    if plan.tasks:
        more = len(plan.tasks) - MOST_TASKS
        last = plan.tasks[-MOST_TASKS:]
        tasks = [f"{task.id} ({task.status}): {' '.join(task.description.split())}" for task in last]
        yield _listed(f"Tasks that are planned already{f', the last {MOST_TASKS}' if more > 0 else ''}:", tasks)
    if survey.files:
        more_files = (f"and {survey.more_files} more",) if survey.more_files else ()
        yield _listed("Files of the repository:", (*survey.files, *more_files))
    if survey.code:
        yield _pieces("Code that may matter:", survey.code)
    if survey.tests:
        yield _pieces("Tests that may matter:", survey.tests)


def _listed(title: str, lines: Iterable[str]) -> str:
    return "\n".join((title, *lines))


def _pieces(title: str, chunks: Iterable[Chunk]) -> str:
    return "\n\n".join((title, *(chunk.shown.rstrip() for chunk in chunks)))


def _reply(attempt: PlanAttempt) -> str:
    if attempt.by_user:
        return f"The user refused this plan: {attempt.reason}\nWrite the whole plan again, with that in mind."
    return f"That is not a plan: {attempt.reason}\nWrite the whole plan again, in exactly the form above."


def _check_reply(attempt: PlanAttempt) -> str:
    if attempt.by_user:
        return f"The user refused this command: {attempt.reason}\nPropose another one."
    return f"That is no command: {attempt.reason}\nAnswer again, in exactly the form above."
