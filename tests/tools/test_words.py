"""Sentences with values in them, symptoms in a person's words, conditions of the catalog."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.catalog.condition import Condition
from traindx_tools.phrases import fill
from traindx_tools.symptoms import observed_symptoms


@pytest.mark.parametrize(("template", "measured", "text"), [
    ("lr is {lr}", {"lr": 0.00031234567}, "lr is 0.0003123"),
    ("lr is {lr|unknown}", {}, "lr is unknown"),
    ("the {peak_norm} is high", {}, "the peak norm is high"),
    ("{a} and {b}", {"a": (1, 2.5), "b": True}, "1, 2.5 and true"),
])
def test_slots(template: str, measured: dict[str, object], text: str) -> None:
    assert fill(template, measured) == text


def test_a_value_is_never_a_template() -> None:
    assert fill("{a}", {"a": "{b}", "b": "secret"}) == "{b}"


@pytest.mark.parametrize(("words", "seen"), [
    ("loss goes NaN at step 40", {"nonfinite"}),
    ("training hangs in the first validation", {"hang"}),
    ("host RAM grows until the machine swaps", {"memory"}),
    ("the generated text is garbled", {"wrong-output"}),
    ("the model is small", set()),
    ("restart", set()),
])
def test_observations_are_found_in_words(words: str, seen: set[str]) -> None:
    assert observed_symptoms(words) == seen


@pytest.mark.parametrize(("test", "value", "holds"), [
    ("ramp", "ramp", True), ("ramp", "abrupt", False), (">= 1e3", 1000.0, True), ("> 1e3", 1000.0, False),
    ("< 2", 1, True), ("in a, b", "b", True), ("in a,b", "c", False), ("~ soft.?max", "log_softmax", True),
    ("present", 0.0, True), ("absent", None, True), ("absent", 1, False), ("present", None, False),
    (True, True, True), (2, 2.0, True), (">= 1", "words", False), (">= 1", None, False), ("!= a", "b", True),
    ("!= a", "a", False),
])
def test_conditions(test: object, value: object, holds: bool) -> None:
    assert Condition("key", test).holds({} if value is None else {"key": value}) is holds


@given(st.text(max_size=6000))
def test_any_words_are_read(words: str) -> None:
    assert observed_symptoms(words) >= observed_symptoms("")


@pytest.mark.parametrize("words", ["it always gives identical outputs", "the same class for every image",
                                   "generates all the same token", "predictions are constant"])
def test_outputs_that_do_not_differ_are_a_collapse(words: str) -> None:
    assert "collapse" in observed_symptoms(words)


@pytest.mark.parametrize("words", ["we use the same seed", "the same loss as before", "identical hardware"])
def test_what_else_is_the_same_is_no_collapse(words: str) -> None:
    assert "collapse" not in observed_symptoms(words)
