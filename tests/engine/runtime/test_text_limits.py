from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.engine.runtime.budget import clip


def test_what_fits_stays() -> None:
    assert clip("short", 5) == "short"


def test_head_and_tail_are_kept_and_the_cut_is_stated() -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(100))
    assert clip(text, 30) == f"{text[:20]}\n… 70 characters cut …\n{text[-10:]}"


@given(st.text(max_size=300), st.integers(1, 100))
def test_nothing_grows_beyond_its_bound(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert clipped == text if len(text) <= limit else len(clipped) <= limit + 40
