"""Vocabulary of the tiny model: every byte, prefixes of common words, and the marks of a chat template."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, product

from msgspec import Struct, field

from agent_workbench.core.errors import UsageError

END_OF_TEXT = "<|endoftext|>"
MESSAGE_START = "<|im_start|>"
MESSAGE_END = "<|im_end|>"
THOUGHT_START = "<think>"
THOUGHT_END = "</think>"

# With these a prompt has about as many tokens as words and signs. A merge adds one letter, so every prefix is a token
# as well. Common words come first, because the tokenizer merges in this order.
_WORDS = (
    "the and that for with not you are this from have was which when will task test tests file files line lines step"
    " return import class self def None True False assert raise error value name path text type list dict string int"
    " Thought: Action: Observation: plan diff patch change changed read write run code function module print index"
    " because should first next then there only must after before content passed failed expected result command"
    " pytest python src init main core true false null"
)
_SIGNS = (
    "    ",
    "\n    ",
    "\n\n",
    "():",
    '": "',
    '", "',
    "---",
    "+++",
    "@@",
    "==",
    "->",
    "('",
    "')",
    '("',
    '")',
    "__",
    "b/",
)


@cache
def byte_letters() -> tuple[str, ...]:
    """Return the printable letter that stands for each of the 256 bytes in a byte-level vocabulary (GPT-2's table)."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in itself else chr(next(others)) for byte in range(256))


def spelled(text: str) -> str:
    """Return `text` in the letters of a byte-level vocabulary."""
    letters = byte_letters()
    return "".join(letters[byte] for byte in text.encode())


class Vocabulary(Struct):
    """Tokens, the merges that produce them, and the special tokens.

    `extra` has the numbers of whole texts that no merge produces: a tokenizer never returns one, a sampler may.
    """

    tokens: list[str] = field(default_factory=lambda: list(byte_letters()))
    merges: list[str] = field(default_factory=list)
    control: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)

    def add(self, token: str) -> int:
        """Append a token and return its number."""
        self.tokens.append(token)
        return len(self.tokens) - 1


def make_vocabulary(extra_tokens: Sequence[str] = (), size: int = 0) -> Vocabulary:
    """Return the tiny model's vocabulary; the numbers of everything but `extra_tokens` never change.

    Invented words that no merge produces fill it up to `size`, so that a sampler does as much work as with a real
    model. Raises `UsageError` for an extra token that exists already.
    """
    made = Vocabulary()
    known = set(made.tokens)
    for left, right in _joins():
        if left + right not in known:
            known.add(left + right)
            made.merges.append(f"{left} {right}")
            made.add(left + right)
    for name in (END_OF_TEXT, MESSAGE_START, MESSAGE_END):
        made.control[name] = made.add(name)
    for name in (THOUGHT_START, THOUGHT_END):
        made.marks[name] = made.add(name)
    known.update(made.tokens)
    for text in dict.fromkeys(extra_tokens):
        # A server aborts on a duplicate token.
        if spelled(text) in known or not text:
            raise UsageError(f"{text!r} is a token already, or nothing, and cannot be an extra one")
        made.extra[text] = made.add(spelled(text))
    known.update(made.tokens)
    unheard = (word for word in _made_up_words() if word not in known)
    while len(made.tokens) < size:
        made.add(next(unheard))
    return made


def _made_up_words() -> Iterator[str]:
    """Yield invented words without end, each once, in byte-level letters; half of them start with a space."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
    for length in count(2):
        for parts in product(syllables, repeat=length):
            word = "".join(parts)
            yield from (spelled(f" {word}"), word)


def _joins() -> Iterator[tuple[str, str]]:
    """Yield the merges: each word grows by one letter at a time, alone and after a space."""
    for text in (*(form for word in _WORDS.split() for form in (" " + word, word)), *_SIGNS):
        whole = spelled(text)
        for cut in range(1, len(whole)):
            yield whole[:cut], whole[cut]
