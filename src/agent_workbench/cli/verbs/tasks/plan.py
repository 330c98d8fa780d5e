"""`agent plan`: list, check and extend the plan."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from agent_workbench.cli.options import NEW_SUMMARY, add_verb
from agent_workbench.cli.output import say, say_aside
from agent_workbench.cli.verbs.tasks.plan_new import configure_new, new_tasks
from agent_workbench.cli.verbs.tasks.plan_work import configure_work
from agent_workbench.core.errors import ExitCode, PlanError, UsageError
from agent_workbench.core.ids import task_id
from agent_workbench.core.invocation import Invocation
from agent_workbench.core.plan import Plan, Task, TaskStatus, check_plan, next_id
from agent_workbench.core.text.amounts import counted_text


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, the verbs below it, and the function that runs it."""
    verb.set_defaults(execute=show)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    add_verb(below, "show", "print the tasks and their status", show)
    add_verb(below, "check", "check the plan and print its faults", check)
    adding = add_verb(below, "add", "append a task", add_task)
    adding.add_argument("description", metavar='"WORDS"', help="what is to be done, in quotes")
    adding.add_argument("--goal", default="", help="how to see that it is done")
    adding.add_argument("--accept", action="append", default=[], metavar="COMMAND", help="a command that must pass")
    adding.add_argument("--after", action="append", default=[], metavar="ID", help="a task it depends on")
    add_verb(below, "edit", "open the plan in your editor and check it afterwards", edit)
    configure_new(add_verb(below, "new", NEW_SUMMARY, new_tasks))
    configure_work(below)


def show(_: argparse.Namespace) -> int:
    """Print the plan."""
    from agent_workbench.api.plans import plan_status

    status = asyncio.run(plan_status(Invocation(Path.cwd(), os.environ, {})))
    plan = status.plan
    if plan.goal:
        say(plan.goal)
    for task in plan.tasks:
        _print(task, plan, status.states[task.id])
    if not plan.tasks:
        say('the plan has no tasks; `agent plan add "…"` appends one')
    return ExitCode.DONE


def check(_: argparse.Namespace) -> int:
    """Read the plan strictly; a fault is an error with file and line."""
    from agent_workbench.api.plans import checked_plan

    plan = asyncio.run(checked_plan(Invocation(Path.cwd(), os.environ, {})))
    say(f"the plan is valid: {counted_text(len(plan.tasks), 'task')}")
    return ExitCode.DONE


def edit(_: argparse.Namespace) -> int:
    """Open the plan in the user's editor, again if it is invalid and the user agrees."""
    from agent_workbench.api.plans import edit_plan

    invocation = Invocation(Path.cwd(), os.environ, {})
    edited = asyncio.run(edit_plan(invocation))
    while edited.fault is not None:
        # Asked outside of the event loop, so that Ctrl-C ends it at once.
        try:
            again = _mended(str(edited.fault))
        except KeyboardInterrupt:
            say_aside(f"\n{_kept(invocation, edited.text)}")
            raise
        if not again:
            advice = "; ".join(filter(None, (edited.fault.advice, _kept(invocation, edited.text))))
            raise PlanError(str(edited.fault), advice=advice) from edited.fault
        edited = asyncio.run(edit_plan(invocation, edited))
    plan = edited.plan
    say("nothing was changed" if plan is None else f"the plan is valid: {counted_text(len(plan.tasks), 'task')}")
    return ExitCode.DONE


def _kept(invocation: Invocation, text: str) -> str:
    """Store a text that the user gave up, and return a message about it."""
    from agent_workbench.api.plans import keep_plan_text

    return f"the plan is unchanged; your text is kept in {asyncio.run(keep_plan_text(invocation, text))}"


def _mended(fault: str) -> bool:
    say_aside(fault)
    return _agreed("edit it again? [y/N] ")


def add_task(options: argparse.Namespace) -> int:
    """Append a task. Of a prompt that is called the first line describes it, the others are its goal."""
    from agent_workbench.api.plans import called_words

    if not options.description.strip():
        raise UsageError("the description of the task is empty", advice="describe what to do")
    if not all(command.strip() for command in options.accept):
        raise UsageError("an acceptance command is empty", advice="omit --accept if there is none")
    plan = _read()
    after = tuple(task_id(each) for each in options.after)
    words = asyncio.run(called_words(Invocation(Path.cwd(), os.environ, {}), options.description))
    first, _, rest = words.partition("\n") if words != options.description else (words, "", "")
    goal = options.goal or rest.strip()
    task = Task(next_id(plan.tasks), first, goal, accept_tests=tuple(options.accept), depends_on=after)
    _append((task,), plan)
    _print(task, plan, task.status)
    return ExitCode.DONE


def _agreed(question: str) -> bool:
    try:
        return sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _read() -> Plan:
    from agent_workbench.api.plans import repo_plans

    async def read() -> Plan:
        plans = await repo_plans(Invocation(Path.cwd(), os.environ, {}))
        return await plans.read()

    return asyncio.run(read())


def _append(tasks: tuple[Task, ...], plan: Plan) -> None:
    from agent_workbench.api.plans import repo_plans

    if problems := check_plan(Plan((*plan.tasks, *tasks))):
        raise PlanError("; ".join(problems))

    async def append() -> None:
        plans = await repo_plans(Invocation(Path.cwd(), os.environ, {}))
        await plans.add(tasks)

    asyncio.run(append())


def _print(task: Task, plan: Plan, state: str) -> None:
    from agent_workbench.views.edits import edit_lines

    waiting = plan.waits_for(task)
    after = f"  (after {', '.join(waiting)})" if waiting else ""
    say(f"{task.id:<6} {state:<12} {' '.join(task.description.split())}{after}")
    for line in edit_lines(task):
        say(f"{'':<20}edit {line}")
    for command in task.accept_tests:
        say(f"{'':<20}$ {command}")
    if task.status is TaskStatus.FAILED:
        say(f"{'':<20}`agent run -t {task.id}` starts it again")
