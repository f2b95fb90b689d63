"""Held-out data in two words, with a hyphen, an underscore or a space, are held-out data."""

from __future__ import annotations

import pytest

from traindx_tools.on_logs.readers.names import group_word, identify


@pytest.mark.parametrize("word", ["held-out", "held_out", "heldout", "Held-Out", "hold-out", "holdout"])
def test_one_word_however_it_is_spelled(word: str) -> None:
    assert group_word(word) == "validation"
    assert identify(f"{word} loss").group == "validation"
    assert identify(f"{word}_acc").canonical == "accuracy"


@pytest.mark.parametrize("word", ["upheld-out", "threshold-out", "hold-outs", "held", "out"])
def test_other_words_are_none(word: str) -> None:
    assert group_word(word) is None
