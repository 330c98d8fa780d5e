"""A session that is killed at an event: from there on nothing of it reaches the journal."""

import pytest

from agent_workbench.core.events import Event, Recorded
from agent_workbench.engine.session.unattended import run_unattended
from tests.engine.stage import T1, Stage


class Killed(BaseException):
    """The process is no more."""


def kill_at(stage: Stage, kind: type[Event], number: int = 1, *, before: bool = False) -> None:
    """Have the stage's session end when the `number`th event of a kind is recorded, `before`: is about to be."""
    record = stage.recorder.record
    seen, dead = 0, False

    async def recording(event: Event, *, after: int | None = None) -> Recorded:
        nonlocal seen, dead
        seen += isinstance(event, kind)
        reached = seen == number and isinstance(event, kind)
        if dead or (reached and before):
            dead = True
            raise Killed
        recorded = await record(event, after=after)
        if reached:
            dead = True
            raise Killed
        return recorded

    stage.recorder.record = recording  # type: ignore[method-assign]  # a kill cannot be asked for


async def run_until_killed(stage: Stage, kind: type[Event], number: int = 1, *, before: bool = False) -> None:
    """Work on T-1 without a person until the kill."""
    kill_at(stage, kind, number, before=before)
    with pytest.raises(Killed):
        await run_unattended(stage.session, stage.recorder, (T1,))
