"""Verdict on the fitness of a model for each role, from the report of its test."""

from collections.abc import Iterator

from agent_workbench.core.diagnostics import Fitness, ModelReport, QuestionKind
from agent_workbench.core.model import Purpose

LEAST_CONTEXT_TOKENS = 8_192
SLOW_TOKENS_PER_SECOND = 5.0
_MOST_READ_AGAIN = 0.05


def fitness(report: ModelReport) -> tuple[Fitness, ...]:
    """Return the verdict for each role."""
    remarks = tuple(_remarks(report))
    return (_executor(report, remarks), _planner(report, remarks), _reflexion(report, remarks))


def _executor(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    steps = [each for each in report.asked if each.kind in {QuestionKind.CALL, QuestionKind.DIFF}]
    valid, right = sum(each.valid for each in steps), sum(each.right for each in steps)
    diffs = [each for each in steps if each.kind is QuestionKind.DIFF]
    changed = sum(each.right for each in diffs)
    seen = f"{valid} of {len(steps)} steps have the form, {right} do what was asked"
    seen += f", {changed} of {len(diffs)} diffs are right"
    fit = len(steps) > 0 and valid >= 0.85 * len(steps) and right >= 0.7 * len(steps) and changed >= 1
    small = 0 < report.facts.context_tokens < LEAST_CONTEXT_TOKENS
    if small:
        seen += f"; a context of {report.facts.context_tokens} tokens is too small for a task"
    return Fitness(Purpose.EXECUTOR, fit and not small, seen, remarks)


def _planner(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    return _by_one(report, remarks, Purpose.PLANNER, QuestionKind.PLAN, "the plan has its form, and tasks for the goal")


def _reflexion(report: ModelReport, remarks: tuple[str, ...]) -> Fitness:
    return _by_one(report, remarks, Purpose.REFLEXION, QuestionKind.REFLEXION, "it says what failed")


def _by_one(report: ModelReport, remarks: tuple[str, ...], role: Purpose, kind: QuestionKind, good: str) -> Fitness:
    answer = next((each for each in report.asked if each.kind is kind), None)
    if answer is None:
        return Fitness(role, fit=False, because="it was not asked", but=())
    return Fitness(role, answer.right, good if answer.right else answer.why, remarks)


def _remarks(report: ModelReport) -> Iterator[str]:
    if report.keeps_grammar is False:
        yield "no grammar holds its answers: now and then a step will have to be asked for again"
    if 0 < report.tokens_per_second < SLOW_TOKENS_PER_SECOND:
        yield f"{report.tokens_per_second:.1f} tokens/s are slow: a step of 300 tokens takes a minute or more"
    if report.reads is None:
        yield "it does not tell what its cache holds: whether prompts are read again cannot be seen"
    elif report.reads.again_share > _MOST_READ_AGAIN:
        yield f"it reads {report.reads.again_share:.0%} of its prompts again: later steps become slow"
    if report.facts.thinks:
        yield "it thinks before each answer: that takes tokens and time, and is never sent back"
    if not report.facts.context_tokens:
        yield "the size of its context is not known: a task may end with a prompt that does not fit"
