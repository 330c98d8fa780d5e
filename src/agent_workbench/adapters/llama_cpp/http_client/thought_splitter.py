"""Tells the thought from the answer where a server sends both as one text, marked by `<think>` and `</think>`."""

from collections.abc import Generator, Iterator

from agent_workbench.adapters.llama_cpp.vocabulary import THOUGHT_END, THOUGHT_START
from agent_workbench.core.model import TextDelta, ThoughtDelta

Piece = TextDelta | ThoughtDelta


class ThoughtSplitter:
    """Sorts the pieces of one text. With `opened` it begins within a thought: the mark was the prompt's last word."""

    def __init__(self, *, opened: bool = False) -> None:
        self._thinking = opened
        self._settled = opened
        self._waiting = ""

    def feed(self, text: str) -> Iterator[Piece]:
        """Yield what of all text so far can be sorted and was not yielded yet."""
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
        """Yield what still waited: it is no mark, as nothing comes after it."""
        waiting, self._waiting = self._waiting, ""
        if waiting:
            yield ThoughtDelta(waiting) if self._thinking else TextDelta(waiting)

    def settle(self) -> None:
        """Take all that comes for the answer: the server sorts by itself."""
        self._settled, self._thinking = True, False

    def _begun(self, text: str) -> str:
        """Find out whether the text begins with a thought; return what is left to be sorted."""
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
    """Return how many letters at the end of `text` may be the beginning of the mark that ends a thought."""
    most = min(len(text), len(THOUGHT_END) - 1)
    return next((length for length in range(most, 0, -1) if THOUGHT_END.startswith(text[-length:])), 0)
