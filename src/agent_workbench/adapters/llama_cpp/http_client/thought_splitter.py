"""Separation of a thought from the answer in one text, by the marks `<think>` and `</think>`."""

from collections.abc import Generator, Iterator

from agent_workbench.adapters.llama_cpp.vocabulary import THOUGHT_END, THOUGHT_START
from agent_workbench.core.model import TextDelta, ThoughtDelta

Piece = TextDelta | ThoughtDelta


class ThoughtSplitter:
    """Splits one streamed text. With `opened` it starts inside a thought, because the prompt ended with the mark."""

    def __init__(self, *, opened: bool = False) -> None:
        self._thinking = opened
        self._settled = opened
        self._waiting = ""

    def feed(self, text: str) -> Iterator[Piece]:
        """Yield all pieces that are decided and were not yielded yet."""
        text, self._waiting = self._waiting + text, ""
        while text:
            if not self._settled:
                text = self._begun(text)
            elif self._thinking:
                text = yield from self._thought(text)
            else:
                yield TextDelta(text)
                text = ""

    def rest(self) -> Iterator[Piece]:
        """Yield the text that waited for the end of a mark; no mark follows."""
        waiting, self._waiting = self._waiting, ""
        if waiting:
            yield ThoughtDelta(waiting) if self._thinking else TextDelta(waiting)

    def settle(self) -> None:
        """Treat all further text as the answer: the server separates thoughts itself."""
        self._settled, self._thinking = True, False

    def _begun(self, text: str) -> str:
        """Decide if the text starts with a thought; return the text that is left."""
        begins = text.lstrip()
        if begins.startswith(THOUGHT_START):
            self._settled = self._thinking = True
            return begins.removeprefix(THOUGHT_START)
        if THOUGHT_START.startswith(begins):
            self._waiting = text
            return ""
        self._settled = True
        return text

    def _thought(self, text: str) -> Generator[Piece, None, str]:
        thought, mark, after = text.partition(THOUGHT_END)
        if mark:
            self._thinking = False
        else:
            thought = text[: len(text) - _begun_mark(text)]
            self._waiting = text[len(thought) :]
        if thought:
            yield ThoughtDelta(thought)
        return after


def _begun_mark(text: str) -> int:
    """Return the number of letters at the end of `text` that may start the closing mark."""
    most = min(len(text), len(THOUGHT_END) - 1)
    return next((length for length in range(most, 0, -1) if THOUGHT_END.startswith(text[-length:])), 0)
