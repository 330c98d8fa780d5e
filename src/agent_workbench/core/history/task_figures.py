"""Figures of done tasks, from the events of a session."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from agent_workbench.core.events import (
    ActionFinished,
    ConsultantAnswered,
    ModelAnswered,
    PromptBuilt,
    Recorded,
    TaskFinished,
    TaskStarted,
)
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.plan.estimates import TaskFigures

SECONDS_A_MINUTE = 60.0
KINDS = frozenset(
    {"task_started", "prompt_built", "model_answered", "action_finished", "consultant_answered", "task_finished"}
)
"""Kinds of the events that count."""


def done_tasks(events: Iterable[Recorded], copied: int = -1) -> Iterator[TaskFigures]:
    """Yield the figures of each task that is done after event `copied`."""
    run: TaskFigures | None = None
    for recorded in events:
        event = recorded.event
        if isinstance(event, TaskStarted):
            run = TaskFigures(0, 0, 0.0, 0.0, event.definition.intent)
        elif run is None:
            continue
        elif isinstance(event, TaskFinished):
            if event.status is TaskStatus.DONE and recorded.seq > copied:
                yield replace(run, minutes=run.minutes / SECONDS_A_MINUTE)
            run = None
        else:
            run = _with(run, event)


def _with(run: TaskFigures, event: object) -> TaskFigures:
    """Return the figures after an event; `minutes` holds seconds meanwhile."""
    match event:
        case PromptBuilt():
            return replace(run, steps=max(run.steps, event.step))
        case ModelAnswered(figures=figures):
            return replace(
                run,
                tokens=run.tokens + figures.prompt_tokens + figures.answer_tokens,
                dollars=run.dollars + figures.dollars,
                minutes=run.minutes + figures.prompt_seconds + figures.answer_seconds,
            )
        case ConsultantAnswered():
            seconds = event.duration_ms / 1000
            return replace(
                run,
                tokens=run.tokens + event.tokens,
                dollars=run.dollars + event.dollars,
                minutes=run.minutes + seconds,
            )
        case ActionFinished():
            return replace(run, minutes=run.minutes + event.seconds)
        case _:
            return run
