"""Which change of the screen is which key's."""

import pytest

from bench.key_to_paint import NoEffectError, match_effects, percentile_95


def test_an_effect_in_several_pieces_is_one() -> None:
    assert match_effects([1.0, 2.0], [1.25, 1.26, 2.5, 2.6]) == [0.25, 0.5]


def test_an_effect_that_comes_after_the_next_key_counts_with_all_its_time() -> None:
    assert match_effects([1.0, 2.0], [2.25, 2.5]) == [1.25, 0.5]


def test_what_changed_before_the_first_key_is_nobodys() -> None:
    assert match_effects([1.0], [0.5, 1.5]) == [0.5]


def test_a_key_without_an_effect_is_told() -> None:
    with pytest.raises(NoEffectError, match="1 of 2 keys"):
        match_effects([1.0, 2.0], [1.5])


def test_the_95th_percentile() -> None:
    assert percentile_95([0.5]) == 0.5
    assert percentile_95([float(number) for number in range(101)]) == 95
