"""Reader of a streamed chat completion: bytes in; thoughts, text and other items of an answer out."""

import re
from collections.abc import Generator, Iterator

from agent_workbench.adapters.llama_cpp.gbnf import THOUGHT_END, THOUGHT_START
from agent_workbench.adapters.llama_cpp.server_answers import (
    JsonObject,
    first_at,
    model_error,
    number_at,
    object_at,
    overflow,
    parse_object,
    real_at,
    server_error_in,
    text_at,
)
from agent_workbench.core.errors import ModelRefused, ModelUnavailable
from agent_workbench.core.model import (
    AnswerEnd,
    AnswerFigures,
    AnswerItem,
    PromptProgress,
    StopCause,
    TextDelta,
    ThoughtDelta,
)

Piece = TextDelta | ThoughtDelta

# Size limits of a stream: a fixed part and one per token, whose event has about 300 bytes.
_FIXED_BYTES = 2_000_000
_BYTES_PER_TOKEN = 4_000
# Most pieces are one token; a server may also send the characters of a token one by one.
_FIXED_PIECES = 1_000
_PIECES_PER_TOKEN = 8

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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


class AnswerReader:
    """Reads one stream: `feed` it bytes as they come, then call `end`.

    `address` names the server in errors, `secret` never appears in them. `held`: a grammar constrains the answer.
    `thinks`: a thought may come first. `opened`: the stream starts inside a thought that the server does not separate.
    """

    def __init__(
        self,
        address: str,
        answer_tokens: int,
        *,
        secret: str = "",
        held: bool = False,
        thinks: bool = False,
        opened: bool = False,
    ) -> None:
        self.done = False
        self.thought_seen = False
        self._strips = thinks
        self.cache_seen = False
        self._address = address
        self._secret = secret
        self._held = held
        self._opened = opened
        self._most_bytes = _FIXED_BYTES + _BYTES_PER_TOKEN * answer_tokens
        self._most_pieces = _FIXED_PIECES + _PIECES_PER_TOKEN * answer_tokens
        self._bytes = 0
        self._line = b""
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._splitter = ThoughtSplitter(opened=opened)
        self._finish = ""
        self._events = 0
        self._stray = b""
        self._figures = AnswerFigures()

    @property
    def finished(self) -> bool:
        """True if the server gave a finish reason; only figures may follow."""
        return self.done or bool(self._finish)

    @property
    def partial(self) -> str:
        """The answer so far."""
        return "".join(self._pieces)

    @property
    def opened(self) -> bool:
        """True if a thought ended that did not start in the answer: the prompt started it."""
        return not self._held and self.partial.count(THOUGHT_END) == 1 and THOUGHT_START not in self.partial

    def feed(self, data: bytes) -> Iterator[AnswerItem]:
        """Yield the items in the next bytes; raise `ModelError` for an error event or a stream that is too long."""
        self._bytes += len(data)
        if self._bytes > self._most_bytes:
            raise self._endless(f"{self._most_bytes} bytes")
        *lines, self._line = (self._line + data).split(b"\n") if b"\n" in data else [self._line + data]
        for line in lines:
            yield from self._event(line.strip())

    def whole(self, body: JsonObject) -> Iterator[AnswerItem]:
        """Yield the items of an answer that was not streamed."""
        yield from self._take(body)

    def end(self) -> Iterator[AnswerItem]:
        """Yield the last items and `AnswerEnd`; raise `ModelUnavailable` if it was cut, `ContextOverflow` if empty."""
        line, self._line = self._line, b""
        if self._whole(line):
            yield from self._event(line.strip())
        elif not self._events:
            self._stray = self._stray or line.strip()
        if not self._events and self._stray:
            raise self._senseless(self._stray)
        if not self._events:
            raise overflow(": the server answered with nothing", 0, 0)
        if not self.finished:
            raise ModelUnavailable(
                f"the server at {self._address} closed the connection after {len(self._pieces)} pieces of its answer",
                advice="check its log, then press t to retry; the partial answer is kept",
                partial=self.partial,
            )
        yield from self._rest()
        cut = self._finish == "length"
        if cut and not (self._pieces or self._thoughts or self._figures.answer_tokens):
            raise overflow(": there is no room for a single token of an answer", self._figures.prompt_tokens, 0)
        yield AnswerEnd(StopCause.LENGTH if cut else StopCause.END, self._figures)

    def _rest(self) -> Iterator[AnswerItem]:
        yield from self._sorted(self._joiner.rest())
        for piece in self._splitter.rest():
            yield from self._stripped(piece)
        if rest := self._thought_joiner.rest():
            yield self._kept(ThoughtDelta(rest))
        if not self._pieces and self._thoughts and self._finish != "length" and (self._held or self._opened):
            # Everything was taken for a thought, but the grammar describes an answer.
            yield self._kept(TextDelta("".join(self._thoughts)))

    def _whole(self, line: bytes) -> bool:
        """Return True if a last line without its line end is complete."""
        value = line.partition(b":")[2].strip()
        return value == b"[DONE]" or parse_object(value) is not None

    def _event(self, line: bytes) -> Iterator[AnswerItem]:
        field, _, value = line.partition(b":")
        if self.done:
            return
        if field not in {b"data", b"error"}:
            # A line that starts with a colon keeps the connection alive.
            self._stray = self._stray or (line if field not in {b"", b"event", b"id", b"retry"} else b"")
            return
        if value.strip() == b"[DONE]":
            self.done = True
            return
        event = parse_object(value)
        if event is None:
            raise self._senseless(value)
        yield from self._take({"error": event} if field == b"error" else event)

    def _take(self, event: JsonObject) -> Iterator[AnswerItem]:
        self._events += 1
        if event.get("error"):
            raise model_error(server_error_in(0, event, secret=self._secret), self._address, partial=self.partial)
        if progress := object_at(event, "prompt_progress"):
            yield PromptProgress(
                number_at(progress, "processed"), number_at(progress, "total"), number_at(progress, "cache")
            )
        choice = first_at(event, "choices")
        # A complete answer has a `message` where a streamed one has a `delta`.
        delta = object_at(choice, "delta") or object_at(choice, "message")
        thought = self._thought_joiner.feed(text_at(delta, "reasoning_content") or text_at(delta, "reasoning"))
        if thought:
            self._splitter.settle()
            yield self._kept(ThoughtDelta(thought))
        yield from self._sorted(self._joiner.feed(text_at(delta, "content")))
        self._finish = text_at(choice, "finish_reason") or self._finish
        if self._finish == "content_filter":
            raise ModelRefused(f"the server at {self._address} withholds its answer (content_filter)")
        self.cache_seen |= _tells_cache(event)
        self._figures = _figures(event, self._figures)

    def _sorted(self, text: str) -> Iterator[AnswerItem]:
        for piece in self._splitter.feed(text):
            yield from self._stripped(piece)

    def _stripped(self, piece: Piece) -> Iterator[AnswerItem]:
        if isinstance(piece, TextDelta) and not self._pieces and (self._strips or self.thought_seen):
            # Line ends before the answer belong to the thought.
            piece = TextDelta(piece.text.lstrip("\n"))
        if piece.text:
            yield self._kept(piece)

    def _kept(self, piece: Piece) -> Piece:
        if isinstance(piece, ThoughtDelta):
            self.thought_seen = True
            self._thoughts.append(piece.text)
        else:
            self._pieces.append(piece.text)
        if len(self._pieces) + len(self._thoughts) > self._most_pieces:
            raise self._endless(f"{self._most_pieces} pieces of text")
        return piece

    def _endless(self, size: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"the server at {self._address} sent more than {size} for one answer",
            advice="check that it obeys max_tokens",
            partial=self.partial,
        )

    def _senseless(self, said: bytes) -> ModelUnavailable:
        return ModelUnavailable(
            f"the server at {self._address} sent something other than JSON: {said[:60]!r}",
            advice="check that model.url is the address of a llama.cpp or OpenAI-compatible server",
            partial=self.partial,
        )


def _tells_cache(event: JsonObject) -> bool:
    usage, timings = object_at(event, "usage"), object_at(event, "timings")
    told = "cache_n" in timings or "cached_tokens" in object_at(usage, "prompt_tokens_details")
    return told or ("prompt_n" in timings and "prompt_tokens" in usage)


def _figures(event: JsonObject, before: AnswerFigures) -> AnswerFigures:
    """Return the figures in `event`: llama.cpp's own, else those that every server sends, else `before`."""
    if timings := object_at(event, "timings"):
        read, cached = number_at(timings, "prompt_n"), number_at(timings, "cache_n")
        if "cache_n" not in timings:
            # Versions before September 2025 and ik_llama.cpp tell the whole prompt only in `usage`.
            cached = max(0, number_at(object_at(event, "usage"), "prompt_tokens") - read)
        return AnswerFigures(
            prompt_tokens=cached + read,
            cached_tokens=cached,
            answer_tokens=number_at(timings, "predicted_n"),
            prompt_seconds=real_at(timings, "prompt_ms") / 1000,
            answer_seconds=real_at(timings, "predicted_ms") / 1000,
        )
    if usage := object_at(event, "usage"):
        return AnswerFigures(
            prompt_tokens=number_at(usage, "prompt_tokens"),
            cached_tokens=number_at(object_at(usage, "prompt_tokens_details"), "cached_tokens"),
            answer_tokens=number_at(usage, "completion_tokens"),
            prompt_seconds=before.prompt_seconds,
            answer_seconds=before.answer_seconds,
        )
    return before


class SurrogateJoiner:
    """Joins surrogate pairs that arrive in two pieces; an unpaired surrogate becomes U+FFFD."""

    def __init__(self) -> None:
        self._waiting = ""

    def feed(self, text: str) -> str:
        """Return all complete text that was not returned yet."""
        text = self._waiting + text
        self._waiting = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        whole = text.removesuffix(self._waiting) if self._waiting else text
        return _joined(whole)

    def rest(self) -> str:
        """Return what still waits for its second half."""
        waiting, self._waiting = self._waiting, ""
        return _joined(waiting)


def _joined(text: str) -> str:
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
