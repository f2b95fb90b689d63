"""A value beside the expected one: how it is read, and what the record says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom import SymptomAnswer, answers_to, parse, read


def recorded(name: str, values: np.ndarray[Any, Any], original: str, group: str = "train") -> Series:
    """A series that counts steps by tens."""
    n = len(values)
    steps, unknown = np.arange(0.0, 10.0 * n, 10.0, dtype=np.float64), np.full(n, np.nan)
    lines = np.arange(1, n + 1)
    return Series(name, original, group, "run.log", values.astype(np.float64), steps, unknown, unknown, lines)


RUN = Run(series=(recorded("loss", 1.2 * np.exp(-np.arange(100) / 20) + 0.7, "loss"),
                  recorded("accuracy", 0.764 - 0.5 * np.exp(-np.arange(100) / 10), "val_acc", "validation")))


def answer(words: str) -> SymptomAnswer:
    found = answers_to(words, RUN)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("words", ["val_acc 0.764, 0.90 expected", "val_acc 0.764 but should be 0.90",
                                   "val_acc=0.764 (paper: 0.90)", "only 76% instead of 90"])
def test_what_falls_short_in_the_record_is_seen_with_both_values(words: str) -> None:
    found = answer(words)
    assert found.answer == "seen"
    assert found.values["target"] == pytest.approx(0.9)
    assert "ends at 0.764" in found.statement
    assert "0.9 is expected" in found.statement


def test_what_reaches_the_expected_value_is_not_so_in_the_record() -> None:
    found = answer("val_acc should be 0.6")
    assert found.answer == "not_seen"
    assert found.refuted


def test_a_value_that_the_record_does_not_end_at_refutes_nothing() -> None:
    """0.4 is read off something else, or was passed on the way."""
    found = answer("acc 0.4 should be 0.6")
    assert found.answer == "not_seen"
    assert not found.refuted
    assert "0.764" in found.statement


def test_a_loss_is_short_of_what_is_expected_where_it_is_above() -> None:
    assert answer("loss 0.7 instead of 0.1").answer == "seen"
    assert [s.target for s in parse("loss 0.7 instead of 0.1")] == [0.1]


@pytest.mark.parametrize("words", ["val_acc 0.95, 0.90 expected", "loss 0.31 (paper: 0.76)",
                                   "10.2 tokens/s instead of 4"])
def test_better_than_expected_is_no_symptom(words: str) -> None:
    assert parse(words) == ()
    assert read(words).in_order


@pytest.mark.parametrize("words", [
    "batch size 32 instead of 64", "trained 3 epochs instead of 10", "step 100 instead of step 200",
    "With --accum 16 the AUC is below what a colleague gets with one batch of 256",
    "it should be insensitive to the 10-bit input", "loss 0.5 at lr 1e-3 vs 0.7 at lr 1e-4",
])
def test_settings_and_counts_are_no_expected_values(words: str) -> None:
    assert all(s.target is None for s in parse(words))


def test_two_splits_beside_each_other_are_compared_and_neither_is_expected() -> None:
    assert all(s.target is None for s in parse("train acc 0.98 vs val acc 0.3"))


def test_another_symptom_of_the_same_sentence_is_kept() -> None:
    found = parse("val_acc 0.31 instead of 0.9 and memory grows")
    assert [s.direction for s in found] == ["low", "rises"]


def test_a_question_states_no_expected_value() -> None:
    assert all(s.asked or s.target is None for s in parse("should val_acc be 0.9?"))


@pytest.mark.parametrize("words", [
    "val_acc 0.764, it is usually 0.994", "validation accuracy is only 0.764, usually 0.994",
    "val_acc 0.764 (normally 0.994)", "val_acc was 0.994 last week, now 0.764",
    "accuracy 0.764, yesterday it was 0.994",
    "the nightly run failed its quality bar: val_acc 0.764, it is usually 0.994", "val_acc is usually 0.994",
    "val_acc 0.764 does not reach the bar of 0.994", "val_acc 0.764 misses the threshold 0.994",
])
def test_what_is_usual_and_a_bar_are_expected_values(words: str) -> None:
    found = [a for a in answers_to(words, RUN) if a.symptom.target is not None]
    assert [a.values.get("target") for a in found] == [pytest.approx(0.994)]
    assert found[0].answer == "seen"


def test_a_bar_that_is_missed_by_little_is_missed() -> None:
    assert answer("val_acc 0.764 is below the bar 0.765").answer == "seen"
    assert answer("val_acc is usually 0.764").refuted
    assert parse("val_acc 0.764, it is usually 0.760") == ()


def test_a_little_less_than_usual_is_neither_seen_nor_refuted() -> None:
    found = answer("val_acc is usually 0.770")
    assert (found.answer, found.refuted, found.is_open) == ("not_seen", False, True)


@pytest.mark.parametrize("words", ["val_acc 0.9647", "val_acc is 0.99", "the accuracy was 0.99"])
def test_a_value_alone_is_asked_about_and_never_in_order(words: str) -> None:
    found = answer(words)
    assert found.answer == "not_understood"
    assert found.is_open
    assert "not what it should be" in found.statement


@pytest.mark.parametrize("words", ["val_acc is 0.99 as usual", "val_acc is 0.99, all fine", "is val_acc 0.99 right?"])
def test_a_value_that_the_words_call_right_or_ask_about_is_no_symptom(words: str) -> None:
    assert [s for s in parse(words) if not s.asked] == []


@pytest.mark.parametrize("words", ["accuracy 0.5 at threshold 0.9", "accuracy 0.5 in the last epoch 40"])
def test_a_threshold_that_nothing_misses_and_a_last_epoch_are_no_expected_values(words: str) -> None:
    assert all(s.target is None for s in parse(words))
