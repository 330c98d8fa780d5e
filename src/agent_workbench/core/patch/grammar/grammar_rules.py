"""List of the rules of a GBNF grammar, with short names."""

import string

from agent_workbench.core.text.gbnf import literal

_DIGITS = string.digits + string.ascii_lowercase
_INLINE_CHARS = 6


class GrammarRules:
    """Collects the rules of one grammar. Names begin with `prefix`; each literal is written once."""

    def __init__(self, prefix: str = "x") -> None:
        self._prefix = prefix
        self.lines: list[str] = []
        self._literals: dict[str, str] = {}
        self._shared: dict[str, str] = {}
        self._named: dict[object, str] = {}
        self._count = 0

    def fresh(self) -> str:
        """Return a name without a rule."""
        name, number = "", self._count
        self._count += 1
        while True:
            number, digit = divmod(number, len(_DIGITS))
            name = _DIGITS[digit] + name
            if not number:
                return self._prefix + name

    def name_of(self, key: object) -> str:
        """Return the name of what `key` stands for, always the same."""
        if key not in self._named:
            self._named[key] = self.fresh()
        return self._named[key]

    def define(self, name: str, body: str) -> None:
        """Write a rule."""
        self.lines.append(f"{name} ::= {body}")

    def add(self, body: str) -> str:
        """Write a rule with a new name; return the name."""
        name = self.fresh()
        self.define(name, body)
        return name

    def shared(self, body: str) -> str:
        """Return the name of the rule with this body, which is written once."""
        if body not in self._shared:
            self._shared[body] = self.add(body)
        return self._shared[body]

    def literal(self, text: str) -> str:
        """Return the expression for `text`: a literal if it is short, else the name of its rule."""
        if len(text) <= _INLINE_CHARS:
            return literal(text)
        if text not in self._literals:
            self._literals[text] = self.add(literal(text))
        return self._literals[text]
