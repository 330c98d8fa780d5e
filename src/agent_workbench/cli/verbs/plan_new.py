"""`agent plan new` and `agent new`: a plan asked of the model, shown, and decided or left at its gate."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say
from agent_workbench.core.errors import ExitCode, PlanError, UsageError
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.api.sessions.plan_requests import PlanRequestState
    from agent_workbench.core.intents import Intent
    from agent_workbench.core.plan import Task
    from agent_workbench.core.proposals import Proposal
    from agent_workbench.core.proposed_plan import ProposedPlan


def configure_new(verb: argparse.ArgumentParser) -> None:
    """Add the flags of `agent plan new`, for which `agent new` is the short form."""
    verb.set_defaults(execute=new_tasks)
    verb.add_argument("goal", metavar='"GOAL"', help="what the tasks are to reach, in quotes")
    verb.add_argument("--yes", action="store_true", help="write them without asking")
    verb.add_argument(
        "--replace", action="store_true", help="start a new plan although tasks are open; archive this one"
    )
    verb.add_argument(
        "--rest", action="store_true", help="plan anew what is not over: replace those tasks, keep the others"
    )
    verb.add_argument("--json", action="store_true", help="print the plan as JSON; nothing is asked")
    add_model_flags(verb)


def new_tasks(options: argparse.Namespace) -> int:
    """Ask the model for a plan, show it, and record the user's decision in a session of its own.

    The tasks are appended to a plan with open tasks. A finished plan, or one to be replaced, is archived.
    """
    from agent_workbench.api.plans import existing_plan
    from agent_workbench.api.sessions.plan_requests import answer_plan, request_plan
    from agent_workbench.cli.questions import ProgressLine, Remarks
    from agent_workbench.core.inbox import reference_to
    from agent_workbench.core.intents import ProposePlan, SkipProposal
    from agent_workbench.views.gate.gate_bar import progress_text

    if options.rest and options.replace:
        raise UsageError(
            "--rest and --replace exclude each other", advice="--rest keeps what is over, --replace nothing"
        )
    invocation = Invocation(Path.cwd(), os.environ, overrides(options))

    async def ask(line: ProgressLine) -> "PlanRequestState":
        plan = await existing_plan(invocation)
        replaces = bool(plan.tasks) and (plan.over or options.replace) and not options.rest
        wanted = ProposePlan(options.goal, replaces, rest=options.rest)
        return await request_plan(
            invocation,
            wanted,
            approve=options.yes,
            report=lambda update: line.show(progress_text(update)),
            say=Remarks(),
        )

    with ProgressLine() as line:
        asked = asyncio.run(ask(line))
    # Asked outside of the event loop, so that Ctrl-C ends it at once; the plan waits in its session meanwhile.
    while (proposal := asked.proposal) is not None and not options.json:
        reference = reference_to(asked.session, proposal)
        _print_proposal(proposal)
        answer = _answer(proposal) if reference is not None else None
        if answer is None:
            say(_waiting_text(proposal))
            say(str(reference) if reference is not None else "it is too long for the inbox")
            return ExitCode.PARKED
        with ProgressLine() as line:
            asked = asyncio.run(
                answer_plan(
                    invocation,
                    asked.session,
                    answer,
                    report=lambda update: line.show(progress_text(update)),
                    say=Remarks(),
                )
            )
        if isinstance(answer, SkipProposal):
            say("nothing was written; the plan is put aside in its session")
            return ExitCode.PARKED
    if options.json:
        _print_document(asked)
        return ExitCode.DONE if asked.proposal is None else ExitCode.PARKED
    say(asked.outcome)
    return ExitCode.DONE


def _print_document(asked: "PlanRequestState") -> None:
    from agent_workbench.views.reports.json_documents import proposed_plan_document

    shown = asked.proposal or asked.approved
    if shown is None or shown.plan is None:
        raise PlanError("there is no plan to show", advice="try again")
    state = "approved" if asked.proposal is None else "waiting"
    document = proposed_plan_document(asked.session, shown, shown.plan)
    say(json.dumps({**document, "state": state, "outcome": asked.outcome}))


def _waiting_text(proposal: "Proposal") -> str:
    verb = f"agent inbox approve REF{' --special' if proposal.special else ''}"
    return f"nothing was written; the plan waits: `agent tui` shows it, `{verb}` takes it"


def _print_proposal(proposal: "Proposal") -> None:
    """Print the plan, what can begin at once before what waits."""
    from agent_workbench.views.plan import ready_first, summary_text

    plan = proposal.plan
    if plan is None:
        return
    say(summary_text(plan))
    for title, tasks in zip(("ready", "waiting"), ready_first(plan.taken), strict=True):
        for number, task in enumerate(tasks):
            say(f"{title}:") if number == 0 else None
            _print_task(task, plan, proposal)
    if plan.rest:
        say("these replace the tasks that are not over; those that are queued are withdrawn")
    else:
        say("this replaces the plan, which is archived" if plan.replaces else "these are appended to the plan")


def _print_task(task: "Task", plan: "ProposedPlan", proposal: "Proposal") -> None:
    from agent_workbench.views.plan import estimate_text, labels_text

    estimate = next((each.estimate for each in plan.tasks if each.task.id == task.id), None)
    after = f"  (after {', '.join(task.depends_on)})" if task.depends_on else ""
    say(f"{task.id:<6} {' '.join(task.description.split())}{after}")
    if labels := labels_text(task):
        say(f"{'':<7}{labels} · {plan.complexity(task)}")
    for label, text in (("goal", task.goal), ("approach", task.suggested_approach)):
        say(f"{'':<7}{label}: {text}") if text else None
    for command in task.accept_tests:
        say(f"{'':<7}must pass: $ {command}{'  (not one of your checks)' if command in proposal.special else ''}")
    say(f"{'':<7}{estimate_text(estimate)}") if estimate is not None else None


def _answer(proposal: "Proposal") -> "Intent | None":
    """Return the user's decision, None if they give none: the plan then waits."""
    from agent_workbench.core.intents import ApproveProposal, RejectProposal, SkipProposal
    from agent_workbench.core.proposals import shown_sha

    if not sys.stdin.isatty():
        return None
    try:
        said = input("take them? [y]es, [n]o, a reason to ask again, or Enter to decide later: ").strip()
    except EOFError:
        return None
    match said.lower():
        case "":
            return None
        case "y" | "yes":
            return ApproveProposal(proposal.id, shown_sha(proposal))
        case "n" | "no":
            return SkipProposal(proposal.id)
        case _:
            return RejectProposal(proposal.id, said)
