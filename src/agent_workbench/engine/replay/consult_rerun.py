"""Exact re-run of consultations: each question is made again from its event and compared with what was sent."""

from collections.abc import Iterable, Iterator

from agent_workbench.core.events import ConsultantAnswered, ConsultantAsked, PromptBuilt, Recorded
from agent_workbench.core.history.replay_pace import PromptDifference, ReproducedPrompt
from agent_workbench.core.model import Purpose
from agent_workbench.engine.consult.attempts import sent_messages
from agent_workbench.engine.prompt.messages import prompt_sha


def rerun_consultations(events: Iterable[Recorded], first: int) -> Iterator[ReproducedPrompt]:
    """Yield the question of each recorded attempt, numbered from `first`."""
    asked: dict[int, tuple[int, ConsultantAsked]] = {}
    number = first
    for recorded in events:
        event = recorded.event
        if isinstance(event, ConsultantAsked):
            asked[event.number] = recorded.seq, event
        elif isinstance(event, ConsultantAnswered) and event.number in asked:
            seq, question = asked[event.number]
            for attempt, messages in zip(event.attempts, sent_messages(question, event.attempts), strict=True):
                built = PromptBuilt(
                    event.number,
                    Purpose.CONSULTANT,
                    len(messages),
                    attempt.figures.prompt_tokens,
                    attempt.sha,
                    endpoint=attempt.endpoint,
                    seed=attempt.seed,
                    answer_tokens=question.answer_tokens,
                )
                same = not attempt.sha or prompt_sha(messages) == attempt.sha
                difference = None if same else PromptDifference("the question is another one", question.skill)
                yield ReproducedPrompt(number, seq, built, difference, compared=bool(attempt.sha))
                number += 1
