"""Answer of the model as the client gets it: thoughts and reply in pieces while it arrives, the rest at its end."""

from msgspec import Struct

from agent_workbench.acp.editor import Update, message, thought
from agent_workbench.core.events import Event, ModelAnswered, ModelInterrupted, PromptBuilt
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import Purpose
from agent_workbench.core.text.chat_form import split_chat_answer, split_streamed
from agent_workbench.core.text.sanitizer import sanitize
from agent_workbench.views.transcript.answer_parts import split_answer

SHOWN = frozenset({Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.CHAT})
ACTION = "Action:"
LABELS = ("Thought:", ACTION, "Answer:", "Reflexion:")


class _Parts(Struct, frozen=True):
    thought: str
    reply: str = ""


class AnswerStream:
    """Part of the arriving answer that was sent. Pieces are sent only as long as the whole begins with them."""

    def __init__(self) -> None:
        self._purpose = Purpose.EXECUTOR
        self._sent = _Parts("")
        self._ended = True

    def streamed(self, streaming: Streaming | None) -> list[Update]:
        """Return what is new of an answer that arrives."""
        if streaming is None or self._ended or self._purpose not in SHOWN:
            return []
        return self._added(_parts(self._purpose, streaming.thought, streaming.text, whole=False))

    def recorded(self, event: Event) -> list[Update]:
        """Return what an event adds to the answer: its end brings what was not sent."""
        match event:
            case PromptBuilt():
                self._purpose, self._sent, self._ended = event.purpose, _Parts(""), False
            case ModelAnswered() if self._purpose in SHOWN and not self._ended:
                self._ended = True
                return self._added(_parts(self._purpose, event.reasoning, event.text, whole=True), last=True)
            case ModelInterrupted() if self._purpose in SHOWN and not self._ended:
                self._ended = True
                return self._added(_parts(self._purpose, event.reasoning, event.partial, whole=True), last=True)
            case _:
                pass
        return []

    def _added(self, parts: _Parts, *, last: bool = False) -> list[Update]:
        before = self._sent
        grows = parts.thought.startswith(before.thought) and parts.reply.startswith(before.reply)
        if not grows and not last:
            return []
        self._sent = parts
        end = "\n\n" if last else ""
        found: list[Update] = []
        if (said := _rest(before.thought, parts.thought, end)) and parts.thought:
            found.append(thought(said))
        if (said := _rest(before.reply, parts.reply, end)) and parts.reply:
            found.append(message(said))
        return found


def _rest(sent: str, whole: str, end: str) -> str:
    """Return what follows the part that was sent; all of it where that was another text."""
    rest = whole[len(sent) :] if whole.startswith(sent) else f"\n\n{whole}"
    return f"{rest}{end}"


def _parts(purpose: Purpose, reasoning: str, text: str, *, whole: bool) -> _Parts:
    """Return the thoughts and the reply of an answer; of one that arrives without what may become a label."""
    kept = text if whole else _without_open_label(text)
    if purpose is not Purpose.CHAT:
        return _Parts(_joined(reasoning, split_answer(kept).thought))
    form = split_chat_answer(kept) if whole else split_streamed(kept)
    # Space at the end is sent with what follows it, because the whole has none there.
    return _Parts(_joined(reasoning, form.thought), sanitize(form.reply or "").strip())


def _joined(reasoning: str, said: str) -> str:
    return "\n\n".join(filter(None, (sanitize(reasoning).strip(), sanitize(said).strip())))


def _without_open_label(text: str) -> str:
    """Return the text without a last line that is the beginning of a label, or an action that is not whole."""
    head, _, last = text.rpartition("\n")
    opens = last.startswith(ACTION) or any(label.startswith(last) for label in LABELS)
    return head if last and opens else text
