"""Planner: asks the model for tasks that reach a goal, and reads its answer strictly."""

from contextlib import aclosing

from agent_workbench.core.errors import ModelError, ModelUnavailable
from agent_workbench.core.model import AnswerEnd, Message, ModelRequest, Purpose, Role, StopCause, TextDelta
from agent_workbench.core.model_settings import RoleSampling
from agent_workbench.core.plan import Plan, Task, next_id
from agent_workbench.core.ports.model import Model

MAX_TASKS = 8
ANSWER_TOKENS = 1_500
LISTED_FILES = 200
UNSAID = RoleSampling()

RULES = """\
You break a goal into small tasks for a programmer, in the order in which they are to be done. Each changes little \
and can be checked by a command. Answer with one to eight tasks and nothing else, each in exactly this form:

Task: <what is to be done, one line>
Goal: <how one sees that it is done, one line>
Accept: <a shell command that passes then, or nothing>"""

GRAMMAR = r"""
root ::= task{1,8}
task ::= "Task: " text{1,160} "\nGoal: " text{1,300} "\nAccept: " text{0,160} "\n"
text ::= [^\x00-\x1F\x7F]
"""


def plan_request(
    goal: str, files: tuple[str, ...], answer_seconds: float, *, takes_grammar: bool, chosen: RoleSampling = UNSAID
) -> ModelRequest:
    """Return the messages of the request."""
    listed = "\n".join(files[:LISTED_FILES])
    asked = f"Goal: {goal}\n\nFiles of the repository:\n{listed}"
    return ModelRequest(
        messages=(Message(Role.SYSTEM, RULES), Message(Role.USER, asked)),
        purpose=Purpose.PLANNER,
        grammar=GRAMMAR if takes_grammar else "",
        answer_tokens=ANSWER_TOKENS,
        answer_seconds=answer_seconds,
        subject="plan",
        sampling=chosen.sampling,
        seed=chosen.seed or 0,
    )


async def make_plan(
    model: Model,
    goal: str,
    files: tuple[str, ...],
    existing: Plan,
    answer_seconds: float,
    chosen: RoleSampling = UNSAID,
) -> tuple[Task, ...]:
    """Return tasks for `goal`, numbered after those of the existing plan; raise `ModelError`."""
    while True:
        try:
            facts = await model.observe(Purpose.PLANNER)
            request = plan_request(goal, files, answer_seconds, takes_grammar=facts.takes_grammar, chosen=chosen)
            return read_tasks(await _answer(model, request), existing)
        except ModelError as error:
            if not error.another:
                raise


async def _answer(model: Model, request: ModelRequest) -> str:
    text = ""
    async with aclosing(model.answer(request)) as items:
        async for item in items:
            if isinstance(item, TextDelta):
                text += item.text
            elif isinstance(item, AnswerEnd):
                if item.stop is StopCause.LENGTH:
                    raise ModelError("the plan was cut at the token limit", advice="ask for a smaller goal")
                return text
    raise ModelUnavailable("the model's plan has no end", advice="try again", partial=text)


def read_tasks(text: str, existing: Plan) -> tuple[Task, ...]:
    """Return the tasks in an answer; raise `ModelError` if it breaks the format."""
    tasks: list[Task] = []
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or len(lines) % 3 or len(lines) > 3 * MAX_TASKS:
        raise ModelError("the model's plan is not in the form Task, Goal, Accept", advice=f"it said: {text[:400]!r}")
    for number in range(0, len(lines), 3):
        description, goal, accept = (
            _after(line, label)
            for line, label in zip(lines[number : number + 3], ("Task", "Goal", "Accept"), strict=True)
        )
        if not description:
            raise ModelError("the model's plan has a task without words", advice="ask again")
        taken = (*existing.tasks, *tasks)
        tasks.append(Task(next_id(taken), description, goal, accept_tests=(accept,) if accept else ()))
    return tuple(tasks)


def _after(line: str, label: str) -> str:
    head, colon, rest = line.partition(":")
    if head.strip() != label or not colon:
        raise ModelError(f"the model's plan has {line[:80]!r} where a line `{label}: …` belongs", advice="ask again")
    return rest.strip()
