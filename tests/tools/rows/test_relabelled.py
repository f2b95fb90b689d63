"""Evaluations of several data sets at one step: what the ones before showed still counts."""

from __future__ import annotations

import numpy as np

from traindx_tools.rows.relabelled import Answered

Y = np.repeat(np.arange(6.0), 30)


def answered(shown: list[bool], last_mixed: bool) -> Answered:
    told = Answered()
    for step, renamed in enumerate(shown, 1):
        told.take(step, Y, (Y + 1) % 6 if renamed else Y)
    if last_mixed:
        told.take(len(shown), Y, Y)
    return told


def test_an_evaluation_of_the_training_data_behind_it_hides_nothing() -> None:
    found = answered([True, True, True], last_mixed=True).at_last()
    assert found is not None
    assert (found.before, found.after) == (0.0, 1.0)


def test_what_one_evaluation_showed_and_the_next_did_not_is_gone() -> None:
    assert answered([True, False, False], last_mixed=False).at_last() is None
    assert answered([False, True], last_mixed=True).at_last() is None
    assert Answered().at_last() is None
