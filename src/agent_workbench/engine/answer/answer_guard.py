"""Guard of a streamed answer: stops it where it repeats itself, or where a second step begins."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.live import Streaming
from agent_workbench.core.model import AnswerItem, ModelRequest, StopCause, TextDelta, ThoughtDelta
from agent_workbench.core.text.repetition import Repetition, RepetitionDetector
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.engine.answer.step_protocol import second_step
from agent_workbench.engine.runtime.budget import clip_line

_BLOCK_CHARS = 60
# Signs of a diff: with them a line of the prompt is copied into an answer.
_SIGN = re.compile(r"^[-+ ]", re.MULTILINE)


class AnswerStop(Struct, frozen=True):
    """Stop of an answer: its cause, the answer and thought that are kept, and the reason in words."""

    cause: StopCause
    text: str
    thought: str
    what: str = ""


class AnswerGuard:
    """Guard of one answer. With `tools` it is a step in free text, which ends where a second one begins."""

    def __init__(self, request: ModelRequest, tools: Mapping[str, ToolSpec] = MappingProxyType({})) -> None:
        self._messages = [message.text for message in request.messages]
        self._tools = {} if request.grammar else tools
        self._text, self._thought = RepetitionDetector(), RepetitionDetector()

    def stop(self, item: AnswerItem, shown: Streaming) -> AnswerStop | None:
        """Return the stop if the answer ends with `item`, the last one of `shown`; else None."""
        match item:
            case ThoughtDelta():
                found = self._thought.feed(item.text)
                if found is not None and not self._copied(shown.thought, found):
                    return _repeated(found, shown.thought, "", shown.thought[: found.end])
            case TextDelta():
                if self._tools and ":" in item.text and (end := second_step(shown.text, self._tools)):
                    return AnswerStop(StopCause.END, shown.text[:end].rstrip() + "\n", shown.thought)
                found = self._text.feed(item.text)
                if found is not None and not self._copied(shown.text, found):
                    return _repeated(found, shown.text, _kept(shown.text, found), shown.thought)
            case _:
                pass
        return None

    def _copied(self, text: str, found: Repetition) -> bool:
        """Return True if the prompt has the same repetition, so that the answer only copies it."""
        run = text[found.end - found.period :]
        plain = _SIGN.sub("", run[run.find("\n") + 1 :])
        return any(run in each or (plain and plain in each) for each in self._messages)


def _repeated(found: Repetition, text: str, kept: str, thought: str) -> AnswerStop:
    block = text[found.end : found.end + found.period]
    begins = block.rfind("\n") + 1  # A copy may begin within a line.
    lines = [line for line in (block[begins:] + block[:begins]).split("\n") if line.strip()] or [""]
    count = next(size for size in range(1, len(lines) + 1) if lines == (lines[:size] * len(lines))[: len(lines)])
    again = found.chars / found.period * len(lines) / count
    size = f"{count} lines" if count > 1 else f"{clip_line(lines[0].strip(), _BLOCK_CHARS)!r}"
    return AnswerStop(StopCause.REPETITION, kept, thought, f"stopped: it wrote the same {size} {again:.0f} times more")


def _kept(text: str, found: Repetition) -> str:
    """Return the answer up to the second copy, without a line that had only begun."""
    kept = text[: found.end]
    whole = kept.rfind("\n") + 1
    return kept[:whole] if whole > found.end - found.period else kept
