"""Prompts that a run has sent, each with the events before it and the answer."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    ChatShortened,
    ContextCompacted,
    ContextFilled,
    ModelAnswered,
    ModelInterrupted,
    ModelObserved,
    ModelSwitched,
    PromptBuilt,
    Recorded,
)
from agent_workbench.core.model import AnswerFigures, ModelFacts, Purpose


class SentPrompt(Struct, frozen=True):
    """A sent prompt, the events since the previous one, and its answer, if there is one.

    `notes`: it asked for a summary of the scratchpad. `switched_from` is the model that was asked before the user chose
    another one, empty if it is the same as before.
    """

    number: int
    built: PromptBuilt
    since: tuple[Recorded, ...]
    facts: ModelFacts | None
    compacted: bool
    notes: bool = False
    end: ModelAnswered | ModelInterrupted | None = None
    switched_from: str = ""

    @property
    def through_seq(self) -> int:
        """Last event that a shortened prompt contains, else -1."""
        filled = [each.event.through_seq for each in self.since if isinstance(each.event, ContextFilled)]
        return filled[-1] if filled and self.built.purpose is Purpose.SUMMARY else -1

    @property
    def figures(self) -> AnswerFigures:
        """Figures of the answer, zeros until there is one."""
        return self.end.figures if self.end is not None else AnswerFigures()


def sent_prompts(history: Iterable[Recorded], before: int, met: dict[Purpose, ModelFacts]) -> Iterator[SentPrompt]:
    """Yield the prompts of a run; `before` is the number of earlier prompts, `met` the last observed models."""
    since: list[Recorded] = []
    compacted = notes = False
    switched_from = ""
    open_prompt: SentPrompt | None = None
    for recorded in history:
        event = recorded.event
        since.append(recorded)
        match event:
            case ModelObserved():
                met[event.purpose] = event.facts
            case ModelSwitched() if not switched_from:
                switched_from = _name(met.get(Purpose.EXECUTOR))
            case ContextCompacted() | ChatShortened():
                compacted = True
            case ContextFilled():
                notes = event.notes
            case PromptBuilt():
                notes = notes and event.purpose is Purpose.SUMMARY
                if open_prompt is not None:
                    yield open_prompt
                before += 1
                facts = met.get(event.purpose, met.get(Purpose.EXECUTOR))
                was = switched_from if switched_from != _name(facts) else ""
                open_prompt = SentPrompt(before, event, tuple(since), facts, compacted, notes, switched_from=was)
                since, compacted, switched_from = [], False, ""
            case ModelAnswered() | ModelInterrupted() if open_prompt is not None and open_prompt.end is None:
                open_prompt = replace(open_prompt, end=event)
            case _:
                pass
    if open_prompt is not None:
        yield open_prompt


def _name(facts: ModelFacts | None) -> str:
    return facts.model if facts is not None else ""


def prompts_in_context(sent: tuple[SentPrompt, ...]) -> tuple[SentPrompt, ...]:
    """Return the prompts that the last one grew from: those since the last compaction, without summary requests.

    A request for a summary may be shortened to fit. A request about the scratchpad grew from no other prompt.
    """
    start = max((place for place, each in enumerate(sent) if each.compacted), default=0)
    *grown, last = sent[start:]
    if last.notes:
        return (last,)
    through = last.through_seq
    kept = (each for each in grown if each.built.purpose is not Purpose.SUMMARY)
    return (*(each for each in kept if through < 0 or each.since[-1].seq - 1 <= through), last)


def has_answers(sent: tuple[SentPrompt, ...]) -> bool:
    """Return True if there are answers that a summary could cover."""
    ends = (each.end for each in sent if each.built.purpose is not Purpose.SUMMARY)
    return any(isinstance(end, ModelAnswered) or (end is not None and end.cut) for end in ends)
