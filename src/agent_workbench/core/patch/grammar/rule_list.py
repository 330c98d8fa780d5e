"""The rules of a GBNF grammar, which get short names."""

import string

from agent_workbench.core.text.gbnf import literal

_DIGITS = string.digits + string.ascii_lowercase
_INLINE_CHARS = 6
NO_NEWLINE = "\\ No newline at end of file\n"


class Rules:
    """Collects rules of one grammar, whose names begin with `prefix`; the same literal is written once."""

    def __init__(self, prefix: str = "x") -> None:
        self._prefix = prefix
        self.lines: list[str] = []
        self._literals: dict[str, str] = {}
        self._count = 0

    def fresh(self) -> str:
        """Return a name that no rule has."""
        name, number = "", self._count
        self._count += 1
        while True:
            number, digit = divmod(number, len(_DIGITS))
            name = _DIGITS[digit] + name
            if not number:
                return self._prefix + name

    def define(self, name: str, body: str) -> None:
        """Write the rule of a name."""
        self.lines.append(f"{name} ::= {body}")

    def add(self, body: str) -> str:
        """Write a rule and return its name."""
        name = self.fresh()
        self.define(name, body)
        return name

    def literal(self, text: str) -> str:
        """Return what stands for `text`: a short one as it is, a longer one by the name of its rule."""
        if len(text) <= _INLINE_CHARS:
            return literal(text)
        if text not in self._literals:
            self._literals[text] = self.add(literal(text))
        return self._literals[text]
