"""`agent merge`: merge of a finished task into the current branch, or its pull request, after a question."""

import argparse
import asyncio
import os
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

from agent_workbench.cli.output import say, say_document
from agent_workbench.cli.verbs.tui import check_terminal
from agent_workbench.core.errors import ExitCode, TargetMoved
from agent_workbench.core.ids import TaskId, task_id
from agent_workbench.core.repo.workspace import MergeMethod, MergeOutcome
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.sanitizer import sanitize_line, sanitize_whole

if TYPE_CHECKING:
    from agent_workbench.api.merge import ShownMerge


CHOICES = "[y/N, d shows the diff]"
FLAGS = (
    ("--ff-only", MergeMethod.FAST_FORWARD, "only move the branch to the task's commit"),
    ("--no-ff", MergeMethod.MERGE, "make a merge commit, even where the branch could be moved"),
    ("--squash", MergeMethod.SQUASH, "make one new commit of the task's changes"),
    ("--rebase", MergeMethod.REBASE, "make the task's commits again on top of the branch"),
)


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("task", help="the task's id, such as T-1")
    methods = verb.add_mutually_exclusive_group()
    for flag, method, summary in FLAGS:
        methods.add_argument(flag, dest="method", action="store_const", const=method, help=summary)
    request = "push the task's branch to the forge and open a pull request into its default branch instead"
    methods.add_argument("--pull-request", action="store_true", help=request)


def execute(options: argparse.Namespace) -> int:
    """Show the merge, ask, and merge; show it again if it changed meanwhile."""
    task = task_id(options.task)
    check_terminal("agent merge", f"merging asks a person; `git merge agent/{task}` does it by hand")
    invocation = Invocation(Path.cwd(), os.environ, {})
    return _open_pull_request(invocation, task) if options.pull_request else _merge(invocation, task, options.method)


def _merge(invocation: Invocation, task: TaskId, method: MergeMethod | None) -> int:
    from agent_workbench.api.merge import merge_shown, preview_merge

    while True:
        shown = asyncio.run(preview_merge(invocation, task, method))
        if not _is_wanted(shown):
            say("nothing was merged")
            return ExitCode.PARKED
        try:
            asyncio.run(merge_shown(invocation, shown, _say_merged))
            return ExitCode.DONE
        except TargetMoved as moved:
            say(f"{moved}\n")
            # Keys typed ahead do not answer the next question.
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _open_pull_request(invocation: Invocation, task: TaskId) -> int:
    """Show the pull request, ask, and open it."""
    from agent_workbench.subjects.forge.report_calls import RepoPullRequests
    from agent_workbench.views.gate.notes import pull_request_lines

    requests = RepoPullRequests(invocation)
    shown = asyncio.run(requests.preview(task))
    for line in pull_request_lines(shown):
        say(line)
    question = f"\npush {shown.branch} ({shown.commit[:10]}) and open a pull request? {CHOICES} "
    if not _is_approved(question, shown.diff):
        say("nothing was pushed")
        return ExitCode.PARKED
    say(asyncio.run(requests.open(shown)))
    return ExitCode.DONE


def _is_wanted(shown: "ShownMerge") -> bool:
    """Show a merge and return the answer; asked outside of any event loop, so that Ctrl-C ends it at once."""
    from agent_workbench.views.gate.notes import merge_notes

    for block in merge_notes(shown.proposal):
        say(f"\n{block.text}" if block.space_before else block.text)
    into = sanitize_line(shown.target.branch)
    how = shown.proposal.method or MergeMethod.MERGE
    question = f"\n{how} {shown.commit[:10]} ({shown.task}) into {into}? {CHOICES} "
    return _is_approved(question, shown.proposal.diff)


def _is_approved(question: str, diff: str) -> bool:
    while (answer := _answer(question)) in {"d", "diff"}:
        say_document(sanitize_whole(diff, keep_returns=True) or "no file is changed by it")
    return answer in {"y", "yes"}


def _answer(question: str) -> str:
    try:
        return input(question).strip().lower()
    except EOFError:
        say("")
        return ""


def _say_merged(outcome: MergeOutcome) -> None:
    say(f"{outcome.into} is at {outcome.commit[:10]} ({outcome.how})")
