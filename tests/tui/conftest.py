"""What every test of the screen leaves behind is taken away."""

from collections.abc import Iterator

import pytest
from textual._styles_cache import StylesCache


@pytest.fixture(autouse=True)
def drawn_lines() -> Iterator[None]:
    """Let go of the lines of the last app: a cache of Textual's keeps those of thirty, a million objects."""
    yield
    StylesCache.get_inner_outer.cache_clear()
