"""What every test of the screen leaves behind is taken away; the style sheets are read for the first of them only."""

from collections.abc import Iterator

import pytest
from textual._styles_cache import StylesCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

_parse_rules = Stylesheet._parse_rules
_rules: dict[tuple[object, ...], list[RuleSet]] = {}


def _parse_once(
    sheet: Stylesheet,
    css: str,
    read_from: CSSLocation,
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    """Return what Textual's own cache would, had it not one for each app and theme: 30 ms for each app."""
    key = (css, read_from, is_default_rules, tie_breaker, scope, frozenset(sheet._variables.items()))
    if key not in _rules:
        _rules[key] = _parse_rules(sheet, css, read_from, is_default_rules, tie_breaker, scope)
    return _rules[key]


@pytest.fixture(autouse=True)
def styles_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the rules of the style sheets from one app to the next."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", _parse_once)


@pytest.fixture(autouse=True)
def drawn_lines() -> Iterator[None]:
    """Let go of the lines of the last app: a cache of Textual's keeps those of thirty, a million objects."""
    yield
    StylesCache.get_inner_outer.cache_clear()
